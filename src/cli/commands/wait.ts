import { setTimeout as sleep } from 'node:timers/promises';
import { clockOf, exampleDays } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import type { Context } from '../../jobs/context.ts';
import { pairTitle } from '../../operations/registry.ts';
import { GAP_REASONS } from '../../state/coverage/gap-reasons.ts';
import { EXIT, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { day, duration, parseDay } from '../options.ts';
import { firstLines, plural } from '../output.ts';

/** How often the state is read. */
const EVERY_MS = 2_000;

export default defineCommand({
  path: 'wait',
  group: 'Look',
  summary:
    'Wait until a night is complete: until everything that became due on its day is loaded. Exit code 1 if it is late.',
  options: {
    night: day('the day of the night (YYYY-MM-DD, today, yesterday)'),
    timeout: duration('give up after this long, e.g. 90s, 30m; 0: look once', '2h'),
  },
  examples: [`eod wait --night ${exampleDays().to} --timeout 3h`, 'eod wait --night today --timeout 0'],
  async run(cli, { night, timeout, json }) {
    const { openContext } = await import('../open-context.ts');
    if (night === undefined)
      throw usageError('give the day of the night: --night 2025-02-27, today or yesterday');
    const config = await loadSettings(cli);
    const day = parseDay('--night', night, { config, clock: clockOf(config) });
    const context = await openContext(cli, { config });
    const { signal } = cli.life;
    const until = performance.now() + timeout;
    let state = await readState(context, day);
    while (!state.isThere && performance.now() < until && !signal.aborted) {
      const pauseMs = Math.min(EVERY_MS, until - performance.now());
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      state = await readState(context, day);
    }
    if (json) printJson(cli, state);
    else print(cli, stateText(state, day));
    cli.exitCode = state.isThere ? EXIT.done : (cli.life.cutShort() ?? EXIT.failed);
  },
});

/** Whether the night is complete, what became due and is missing, and the newest state of the tables. */
async function readState(context: Context, night: Day) {
  const { stateOfDay } = await import('../../jobs/alerts/complete-night.ts');
  const { readStateNumber } = await import('../../state/loads/state-numbers.ts');
  const { stateNumber: state } = await readStateNumber(context.db.drizzle, null);
  const { isComplete, due, missing } = await stateOfDay(context, night);
  return {
    isThere: isComplete,
    state,
    dueSessions: due,
    missing: missing.map(({ operation, exchange, day, reason }) => ({ operation, exchange, day, reason })),
  };
}

function stateText(
  { isThere, state, dueSessions, missing }: Awaited<ReturnType<typeof readState>>,
  night: Day,
): string {
  const now = `the tables have state ${state}`;
  if (isThere && dueSessions === 0) return `nothing was due on ${night}; ${now}`;
  if (isThere) return `the night of ${night} is complete; ${now}`;
  if (missing.length === 0) return `the night of ${night} has not ended, or has not begun; ${now}`;
  return [
    `the night of ${night} is not complete: ${plural(missing.length, 'trading day')} missing; ${now}`,
    ...firstLines(
      missing,
      ({ operation, exchange, day, reason }) =>
        `  ${pairTitle({ operation, exchange })} ${day}: ${reason === null ? 'missing' : GAP_REASONS[reason]}`,
    ),
  ].join('\n');
}
