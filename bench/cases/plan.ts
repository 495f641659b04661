import { addDays } from '../../src/core/days.ts';
import type { Operation } from '../../src/declaration/operation.ts';
import { operations } from '../../src/operations/registry.ts';
import type { RunRequest } from '../../src/state/request.ts';
import { type Case, check, type Site } from '../support/bench.ts';
import { LAST_TRADING_DAY, settingsFor, tradingDaysBefore } from '../support/pipeline.ts';
import { dropDatabase, migratedDatabase, withClient } from '../support/postgres.ts';
import { startChild } from '../support/processes.ts';
import { EXCHANGE } from '../support/records.ts';

const DATABASE = 'bench_plan';
/** Ten years. */
const TRADING_DAYS = 2_475;
const INSTRUMENTS = 2_500;
/** Both kinds of reports are requested. */
const REQUESTS_PER_DAY = 2;

export const plan: Case = {
  benches: [
    {
      name: 'plan',
      what: 'planning ten years of all operations and instruments, covered but for the last day',
      against: null,
      reach: [
        { figure: 'seconds', atMost: 2 },
        { figure: 'peakRssMb', atMost: 200 },
      ],
    },
  ],
  async *rounds(site) {
    const share = Math.min(1, site.records / 1_000_000);
    const instruments = Array.from(
      { length: Math.max(10, Math.round(INSTRUMENTS * share)) },
      (_, at) => `SYMBOL${at}`,
    );
    const days = tradingDaysBefore(site.small ? 250 : TRADING_DAYS);
    const url = await migratedDatabase(site.server.url, DATABASE);
    const entries = await cover(url, days, instruments);
    for (let round = 1; round <= site.rounds; round++) {
      yield { plan: { ...(await planOnce(site, url, days, instruments)), covered: entries } };
    }
    await dropDatabase(site.server.url, DATABASE);
  },
};

function requestOf(days: readonly string[], instruments: readonly string[]): RunRequest {
  return {
    kind: 'backfill',
    targets: operations.map((operation) => ({
      operation: operation.name,
      exchange: EXCHANGE,
      from: days[0] as string,
      to: LAST_TRADING_DAY,
      refetchFrom: null,
    })),
    instruments,
    options: {},
    live: false,
  };
}

async function planOnce(site: Site, url: string, days: readonly string[], instruments: readonly string[]) {
  const settings = settingsFor(url, site.source.url('first'));
  const child = await startChild('plan', settings, requestOf(days, instruments));
  // It may need more memory than there is: that is a reach missed, and no defect of the bench.
  const ended = await child.finish<PlanCounts>().catch((error: Error) => error);
  if (ended instanceof Error) {
    site.note('plan', ended.message);
    return { seconds: Number.NaN, peakRssMb: Number.NaN };
  }
  const { requests, windows } = ended.result;
  check('plan', {
    'windows of end-of-day ratios': [requests.GetFinRatioEOD, instruments.length * REQUESTS_PER_DAY],
    'windows of quarterly ratios': [requests.GetFinancialRatios, instruments.length * REQUESTS_PER_DAY],
    'operations that request the last day': [
      operations.filter(({ name, windows }) => windows.per !== 'instrument' && (requests[name] ?? 0) > 0)
        .length,
      operations.filter(({ windows }) => windows.per !== 'instrument').length,
    ],
  });
  return { seconds: ended.seconds, peakRssMb: ended.peakRssMb, windows };
}

/** The result of the child's task: windows in all, and those to be requested by operation. */
interface PlanCounts {
  readonly windows: number;
  readonly requests: Readonly<Record<string, number>>;
}

/** Writes the coverage that every request but those about the last day would have left. @returns its rows. */
async function cover(url: string, days: readonly string[], instruments: readonly string[]): Promise<number> {
  return withClient(url, async (client) => {
    let rows = 0;
    for (const operation of operations) {
      const requests = requestsOf(operation, days);
      const written = await client.query(
        `insert into etl.coverage (operation, exchange, day, instrument, variant, last_position, last_said, last_records, loaded_position,
           loaded_records, run_id, checked_at)
         select $1, $2, q.day, i.name, q.variant, now(), 'loaded', 1, now(), 1, 1, now()
           from unnest($3::date[], $4::text[]) as q(day, variant), unnest($5::text[]) as i(name)`,
        [
          operation.name,
          EXCHANGE,
          requests.map(({ day }) => day),
          requests.map(({ variant }) => variant),
          operation.windows.per === 'instrument' ? instruments : [''],
        ],
      );
      rows += written.rowCount ?? 0;
    }
    await client.query(`vacuum analyze etl.coverage`);
    return rows;
  });
}

function requestsOf({ windows }: Operation, days: readonly string[]) {
  const before = days.slice(0, -1);
  if (windows.per === 'once') return [];
  if (windows.per !== 'instrument') return before.map((day) => ({ day, variant: '' }));
  const requests = windows.requests({
    tradingDays: before,
    from: days[0] as string,
    to: addDays(LAST_TRADING_DAY, -1),
    today: LAST_TRADING_DAY,
    live: false,
    options: {},
  });
  return requests.map(({ to, variant }) => ({ day: to, variant }));
}
