import type { Calendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { addDays, type Day } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { lastNight } from '../../declaration/night-times.ts';
import { exchangesOf, type Operation } from '../../declaration/operation.ts';
import { requestedOperations } from '../../operations/requested.ts';
import { readProgress } from '../../state/coverage/completeness.ts';
import type { RunRequest, Target } from '../../state/request.ts';
import type { Context } from '../context.ts';
import { syncTradingDays } from '../responses/sync-sessions.ts';

interface NightlyScope {
  /** The day to plan for. */
  readonly date: Day;
  /** Limits the request to an operation or exchange; by default all. */
  readonly operation?: Operation;
  readonly exchange?: string;
}

/**
 * What a nightly run requests: for each operation and exchange the days from its last loaded trading day to `date`, and
 * before these the lookback for late corrections, or the days since the first trading day whose data may still be
 * published. After a week without nightly runs that includes the whole week.
 */
export async function nightlyRequest(context: Context, scope: NightlyScope): Promise<RunRequest> {
  const { config, clock, calendar } = context;
  const { date } = scope;
  const chosen = scope.operation === undefined ? requestedOperations(config) : [scope.operation];
  const requested = chosen.flatMap((operation) =>
    (scope.exchange === undefined ? exchangesOf(operation, config) : [scope.exchange]).map((exchange) => ({
      operation,
      exchange,
      pair: { operation: operation.name, exchange },
    })),
  );
  await syncTradingDays(context);
  const progress = await readPairProgress(
    context,
    requested.map(({ pair }) => pair),
    date,
  );
  const targets = requested.map(({ pair, ...target }) => {
    const { watermark = null, awaited = null } = progress.get(pairName(pair)) ?? {};
    return nightlyTarget({ ...target, watermark, awaited, date, calendar, config });
  });
  return {
    kind: 'nightly',
    targets,
    instruments: [],
    options: {},
    live: scope.date >= lastNight(config, clock),
  };
}

/** How far the data of each of these pairs reaches, up to a day; by their names. */
async function readPairProgress(context: Context, expected: readonly Pair[], to: Day) {
  const scope = { others: false, to };
  const from = addDays(to, -context.config.EOD_HISTORY_DAYS);
  const recent = await readProgress(context, { ...scope, expected, from });
  // All of the history is read only where nothing of the last weeks is loaded.
  const behind = recent.filter(({ watermark }) => watermark === null);
  const older = behind.length === 0 ? [] : await readProgress(context, { ...scope, expected: behind });
  const watermarks = new Map(older.map((progress) => [pairName(progress), progress.watermark]));
  return new Map(
    recent.map((progress) => [
      pairName(progress),
      {
        awaited: progress.awaited,
        watermark: progress.watermark ?? watermarks.get(pairName(progress)) ?? null,
      },
    ]),
  );
}

interface NightlyInput {
  readonly operation: Operation;
  readonly exchange: string;
  /** Last loaded day, or null if nothing is loaded yet. */
  readonly watermark: Day | null;
  /** First day whose data may still be published, or null. */
  readonly awaited: Day | null;
  readonly date: Day;
  readonly calendar: Calendar;
  readonly config: Pick<Config, 'EOD_LOOKBACK_SESSIONS' | 'EOD_HISTORY_DAYS'>;
}

/** The range to request, of one operation and exchange (pure). */
export function nightlyTarget({
  operation,
  exchange,
  watermark,
  awaited,
  date,
  calendar,
  config,
}: NightlyInput): Target {
  const base = { operation: operation.name, exchange, to: date };
  if (operation.windows.per === 'once') return { ...base, from: date, refetchFrom: null };
  const reach = addDays(date, -config.EOD_HISTORY_DAYS);
  // The watermark is after `date` if the run of an older night is repeated; then `date` counts.
  const edge = watermark === null || watermark > date ? date : watermark;
  const lookback = operation.schedule.hasLookback ? config.EOD_LOOKBACK_SESSIONS : 0;
  const first = calendar.lastTradingDays(exchange, edge, lookback + 1)[0] ?? edge;
  const from = first < reach ? reach : first;
  return {
    ...base,
    from: awaited !== null && awaited < from ? awaited : from,
    refetchFrom: operation.schedule.hasLookback ? from : null,
  };
}
