import type { Calendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { addDays, type Day } from '../../core/days.ts';
import { readProgress } from '../../load/state/coverage/coverage.ts';
import type { RunRequest, Target } from '../../load/state/runs/request.ts';
import { lastNight } from '../../operations/night-times.ts';
import { exchangesOf, expectedVariants, type Operation, partsOf } from '../../operations/operation.ts';
import { operations } from '../../operations/registry.ts';
import type { Context } from '../context.ts';

interface NightlyScope {
  /** The day to plan for. */
  readonly date: Day;
  /** Limits the request to an operation or exchange; by default all. */
  readonly operation?: Operation;
  readonly exchange?: string;
}

/**
 * What a nightly run asks for: for each operation and exchange the days from its last loaded session to `date`, and
 * before these the lookback for late corrections, or the days since the first session whose data may still be
 * published. After a week without nightly runs that includes the whole week.
 */
export async function nightlyRequest(context: Context, scope: NightlyScope): Promise<RunRequest> {
  const { config, clock, calendar, db } = context;
  const chosen = scope.operation === undefined ? operations : [scope.operation];
  const targets: Target[] = [];
  for (const operation of chosen) {
    const exchanges = scope.exchange === undefined ? exchangesOf(operation, config) : [scope.exchange];
    for (const exchange of exchanges) {
      const progress = await readProgress(db.drizzle, {
        operation: operation.name,
        exchange,
        variants: partsOf(operation) === undefined ? (expectedVariants(operation) ?? []) : [''],
        from: addDays(scope.date, -config.EOD_HISTORY_DAYS),
        to: scope.date,
      });
      targets.push(nightlyTarget({ operation, exchange, ...progress, date: scope.date, calendar, config }));
    }
  }
  return {
    kind: 'nightly',
    targets,
    instruments: [],
    options: {},
    live: scope.date >= lastNight(config, clock),
  };
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

/** The range to ask for, of one operation and exchange (pure). */
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
  if (operation.windows.per === 'once' || operation.windows.per === 'row')
    return { ...base, from: date, refetchFrom: null };
  const reach = addDays(date, -config.EOD_HISTORY_DAYS);
  // The watermark is after `date` if the run of an older night is repeated; then `date` counts.
  const edge = watermark === null || watermark > date ? date : watermark;
  const lookback = operation.schedule.hasLookback ? config.EOD_LOOKBACK_SESSIONS : 0;
  const first = calendar.lastSessions(exchange, edge, lookback + 1)[0] ?? edge;
  const from = first < reach ? reach : first;
  return {
    ...base,
    from: awaited !== null && awaited < from ? awaited : from,
    refetchFrom: operation.schedule.hasLookback ? from : null,
  };
}
