import { systemClock } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import type { Context } from '../../jobs/context.ts';
import { planReplay } from '../../jobs/replay/plan-replay.ts';
import { pastsOfRun } from '../../load/state/loads/versions.ts';
import type { ResponseFilter } from '../../load/state/responses/to-replay.ts';
import {
  type Cli,
  confirm,
  type JsonFlag,
  loadSettings,
  logNote,
  print,
  printJson,
  type YesFlag,
} from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseOpenRange, type RangeFlags } from '../options.ts';
import { parseDataSets } from '../parse-request.ts';
import { printEnding, workOnReplay } from '../work-on-run.ts';

interface Flags extends RangeFlags, JsonFlag, YesFlag {
  readonly exchange?: readonly string[];
  readonly rejects?: boolean;
  readonly rebuild?: boolean;
}

export async function replay(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const filter: ResponseFilter = {
    operations: names.length === 0 ? undefined : parseDataSets(names),
    exchanges: flags.exchange,
    ...parseOpenRange(flags, { config, clock: systemClock }),
  };
  const context = await openContext(cli, { config, wait: 'short' });
  if (flags.rebuild === true) {
    const which = names.length === 0 ? 'all data sets' : (filter.operations?.join(', ') ?? '');
    const what = `Rows and history of ${which} become those of the kept responses; where the history differs, states from before cannot be shown any more.`;
    if (!(await confirm(cli, what, flags))) return;
  }
  const runId = await planReplay(context, filter, {
    rejectsOnly: flags.rejects === true,
    rebuild: flags.rebuild === true,
  });
  if (runId !== null) {
    printEnding(cli, await workOnReplay(cli, context, runId), flags, config);
    await logPast(cli, context, runId, flags.rebuild === true);
    return;
  }
  if (flags.rejects !== true) throw usageError('nothing to replay: no kept response matches');
  if (flags.json === true) printJson(cli, null);
  else print(cli, 'nothing to replay: no open reject has a kept response');
}

/** Says which versions can be shown after a run that has replaced history. */
async function logPast(cli: Cli, { db }: Context, runId: number, isRebuild: boolean): Promise<void> {
  const replaced = await pastsOfRun(db.drizzle, runId);
  for (const { table, version } of replaced) {
    logNote(cli, `market.${table}: the history was replaced; states from ${version} on can be shown`);
  }
  if (isRebuild && replaced.length === 0)
    logNote(cli, 'no history was replaced: all states can be shown as before');
}
