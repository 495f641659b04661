import { systemClock } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import { planReplay } from '../../jobs/replay/plan-replay.ts';
import type { ResponseFilter } from '../../state/responses/to-replay.ts';
import { type Cli, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseOpenRange, type RangeFlags } from '../options.ts';
import { parseDataSets } from '../parse-request.ts';
import { printEnding, workOnReplay } from '../work-on-run.ts';

interface Flags extends RangeFlags, JsonFlag {
  readonly exchange?: readonly string[];
  readonly rejects?: boolean;
}

export async function replay(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const filter: ResponseFilter = {
    operations: names.length === 0 ? undefined : parseDataSets(names),
    exchanges: flags.exchange,
    ...parseOpenRange(flags, { config, clock: systemClock }),
  };
  const context = await openContext(cli, { config, wait: 'short' });
  const runId = await planReplay(context, filter, { rejectsOnly: flags.rejects === true });
  if (runId !== null) {
    printEnding(cli, await workOnReplay(cli, context, runId), flags, config);
    return;
  }
  if (flags.rejects !== true) throw usageError('nothing to replay: no kept response matches');
  if (flags.json === true) printJson(cli, null);
  else print(cli, 'nothing to replay: no open reject has a kept response');
}
