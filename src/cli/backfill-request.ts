import { usageError } from '../core/errors.ts';
import type { Context } from '../jobs/context.ts';
import { exchangesOf } from '../jobs/runs/nightly.ts';
import type { RunRequest, Target } from '../load/state/run-request.ts';
import type { Operation } from '../operations/operation.ts';
import { type DayContext, parseExchanges, parseInstruments, parseOperations, parseRange } from './args.ts';
import { parseRequestOptions } from './request-options.ts';

/** The flags of `eod backfill` that say what to ask for; request options stand beside them by name. */
export interface BackfillFlags {
  readonly all?: boolean;
  readonly from?: string;
  readonly to?: string;
  readonly exchange?: string;
  readonly instruments?: string;
  readonly force?: boolean;
  readonly param?: readonly string[];
  readonly [option: string]: unknown;
}

/**
 * What a command line asks for (pure but for an instrument file).
 *
 * @throws PipelineError `usage` for anything that makes no sense.
 */
export function backfillRequest(
  names: readonly string[],
  flags: BackfillFlags,
  context: DayContext & Pick<Context, 'config'>,
): RunRequest {
  const chosen = parseOperations(names, flags.all === true);
  const range = parseRange(flags.from, flags.to, context);
  const exchanges = parseExchanges(flags.exchange);
  const instruments = parseInstruments(flags.instruments);
  refuseUselessInstruments(chosen, instruments);
  const options = parseRequestOptions(chosen, flags.param ?? [], flags);
  const againFrom = flags.force === true ? range.from : null;
  const targets = chosen.flatMap((operation): Target[] =>
    (exchanges ?? exchangesOf(operation, context.config)).map((exchange) => ({
      ...{ operation: operation.name, exchange, ...range, againFrom },
    })),
  );
  if (targets.length === 0) {
    const [first] = chosen;
    throw usageError(
      `${first?.name} is asked of ${first?.exchanges.join(' and ')} unless told otherwise, and EOD_EXCHANGES leaves that out: name one with --exchange`,
    );
  }
  return { kind: 'backfill', targets, instruments, options, live: false };
}

function refuseUselessInstruments(chosen: readonly Operation[], instruments: readonly string[]): void {
  if (instruments.length === 0) return;
  if (chosen.some((operation) => operation.request.instruments !== 'none')) return;
  const names = chosen.map((operation) => operation.name).join(', ');
  throw usageError(`--instruments: ${names} cannot be asked by instrument`);
}
