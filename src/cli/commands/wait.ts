import { setTimeout as sleep } from 'node:timers/promises';
import { clockOf } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import { stateOfDay } from '../../jobs/alerts/complete-night.ts';
import type { Context } from '../../jobs/context.ts';
import { GAP_REASONS } from '../../load/state/coverage/gap-reasons.ts';
import { versionAt } from '../../load/state/loads/versions.ts';
import { pairTitle } from '../../operations/registry.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseDay } from '../options.ts';
import { firstLines, plural } from '../output.ts';

interface Flags extends JsonFlag {
  readonly night?: string;
  readonly state?: number;
  readonly timeout?: number;
}

/** How often it looks. */
const EVERY_MS = 2_000;

const DEFAULT_TIMEOUT_MS = 2 * 3_600_000;

export async function wait(cli: Cli, flags: Flags): Promise<void> {
  if (flags.night === undefined && flags.state === undefined) throw usageError('give --night or --state');
  if (flags.night !== undefined && flags.state !== undefined)
    throw usageError('give --night or --state, but not both; wait for one after the other');
  const config = await loadSettings(cli);
  const night =
    flags.night === undefined ? null : parseDay('--night', flags.night, { config, clock: clockOf(config) });
  const context = await openContext(cli, { config });
  const until = performance.now() + (flags.timeout ?? DEFAULT_TIMEOUT_MS);
  let found = await look(context, night, flags.state ?? 0);
  while (!found.isThere && performance.now() < until && !cli.life.signal.aborted) {
    await sleep(Math.min(EVERY_MS, until - performance.now()), undefined, { signal: cli.life.signal }).catch(
      () => undefined,
    );
    found = await look(context, night, flags.state ?? 0);
  }
  if (flags.json === true) printJson(cli, found);
  else print(cli, foundText(found, night, flags.state ?? 0));
  cli.exitCode = found.isThere ? EXIT.done : (cli.life.cutShort() ?? EXIT.failed);
}

/** Whether it is there now, and the newest state of the tables; of a night also what became due, and is missing. */
async function look(context: Context, night: Day | null, wanted: number) {
  const { version: state } = await versionAt(context.db.drizzle, null);
  if (night === null) return { isThere: state >= wanted, state };
  const { isComplete, due, missing } = await stateOfDay(context, night);
  return {
    isThere: isComplete,
    state,
    dueSessions: due,
    missing: missing.map(({ operation, exchange, day, reason }) => ({ operation, exchange, day, reason })),
  };
}

function foundText(
  { isThere, state, dueSessions, missing = [] }: Awaited<ReturnType<typeof look>>,
  night: Day | null,
  wanted: number,
): string {
  const now = `the tables have state ${state}`;
  if (night === null) return isThere ? now : `${now}, not ${wanted} yet`;
  if (isThere && dueSessions === 0) return `nothing was due on ${night}; ${now}`;
  if (isThere) return `the night of ${night} is complete; ${now}`;
  if (missing.length === 0) return `the night of ${night} has not ended, or has not begun; ${now}`;
  return [
    `the night of ${night} is not complete: ${plural(missing.length, 'session')} missing; ${now}`,
    ...firstLines(
      missing,
      ({ operation, exchange, day, reason }) =>
        `  ${pairTitle({ operation, exchange })} ${day}: ${reason === null ? 'missing' : GAP_REASONS[reason]}`,
    ),
  ].join('\n');
}
