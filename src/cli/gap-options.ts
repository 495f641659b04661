import type { Command } from 'commander';
import { usageError } from '../core/errors.ts';
import type { GapScope } from '../jobs/runs/gaps.ts';
import { type DayContext, parseDay, parseExchanges, parseOperations } from './args.ts';

/** The flags that say where to look for gaps. */
export interface GapFlags {
  readonly from?: string;
  readonly to?: string;
  readonly exchange?: string;
  readonly json?: boolean;
}

/** What `eod gaps` and `eod fill-gaps` have in common. */
export function withGapOptions(command: Command): Command {
  return command
    .argument('[operations...]', 'only these operations, in any case (default: all)')
    .option('--from <day>', 'first day (default: the first loaded one of each operation and exchange)')
    .option('--to <day>', 'last day (default: the last published session)')
    .option('--exchange <list>', 'only these exchanges, e.g. NSE,BSE')
    .option('--json', 'print one JSON document');
}

/** @throws PipelineError `usage` for names and days that make no sense. */
export function gapScope(names: readonly string[], flags: GapFlags, context: DayContext): GapScope {
  const from = flags.from === undefined ? undefined : parseDay('--from', flags.from, context);
  const to = flags.to === undefined ? undefined : parseDay('--to', flags.to, context);
  if (from !== undefined && to !== undefined && from > to) {
    throw usageError(`--from ${from} is after --to ${to}: the range is reversed`);
  }
  return {
    operations: names.length === 0 ? undefined : parseOperations(names, false),
    exchanges: parseExchanges(flags.exchange),
    from,
    to,
  };
}
