import fc from 'fast-check';
import { pino } from 'pino';
import { beforeAll, describe, expect, test } from 'vitest';
import { sha256 } from '../../src/core/sha256.ts';
import type { StepTimes } from '../../src/core/steps.ts';
import { readResponse } from '../../src/extract/index.ts';
import type { Context } from '../../src/jobs/context.ts';
import { describeResponse, storeResponse } from '../../src/jobs/responses/store-response.ts';
import { digestResponse } from '../../src/jobs/worker/fetch-response.ts';
import { repeatLoad } from '../../src/load/repeat-load.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { packBody } from '../../src/state/responses/responses.ts';
import { forAllAsync, setsOf } from '../support/for-all.ts';
import { openStore } from '../support/import-support.ts';
import { backfill, openPipeline, runToEnd } from '../support/pipeline.ts';
import { positionOf } from '../support/position.ts';
import { newRun, newWindow } from './support.ts';

/** Sequences that are tried. */
const RUNS = 4;

const DAYS = ['2025-08-19', '2025-08-20', '2025-08-21'] as const;
const FIRST_CALL = Date.UTC(2025, 9, 22, 6);
const SAVED = ['', '08-21-2025 21:02:14', '08-21-2025 22:30:00', '01-01-2199 00:00:00'] as const;

/** What a response lists: symbols from a first one on, all with one value. */
interface Listing {
  readonly first: number;
  readonly count: number;
  readonly value: number;
  readonly saved: number;
  /** Lists its first symbol twice. */
  readonly twice: boolean;
  /** Ends with a record that is refused. */
  readonly refused: boolean;
  /** Says that it holds fewer records than it does, which is odd and no more. */
  readonly odd: boolean;
}

/** What both databases load. */
type Step =
  | {
      readonly do: 'response';
      readonly operation: 'GetBhavCopyCM' | 'GetSeriesChange';
      readonly from: number;
      readonly days: number;
      /** Which of the listings of this sequence. */
      readonly listing: number;
      readonly part: 'full' | 'filtered' | 'instruments';
      /** Fetched before all that came so far. */
      readonly late: boolean;
      /** Read from a file or kept: not from the source just now. */
      readonly kept: boolean;
    }
  /** The response before, once more. */
  | { readonly do: 'again' };

const few = fc.nat({ max: 7 }).map((number) => number === 0);
const listings = fc.array(
  fc.record({
    first: fc.nat({ max: 3 }),
    count: fc.nat({ max: 12 }),
    value: fc.nat({ max: 1 }),
    saved: fc.constantFrom(0, 1, 1, 2, 2, 3),
    twice: few,
    refused: few,
    odd: few,
  }),
  { minLength: 3, maxLength: 3 },
);
const steps = fc.array(
  fc.oneof(
    {
      weight: 9,
      arbitrary: fc.record({
        do: fc.constant('response' as const),
        operation: fc.constantFrom('GetBhavCopyCM' as const, 'GetSeriesChange' as const),
        from: fc.nat({ max: 1 }),
        days: fc.nat({ max: 1 }),
        listing: fc.nat({ max: 2 }),
        part: fc.oneof(
          { weight: 6, arbitrary: fc.constant('full' as const) },
          { weight: 1, arbitrary: fc.constantFrom('filtered' as const, 'instruments' as const) },
        ),
        late: few,
        kept: few,
      }),
    },
    { weight: 9, arbitrary: fc.constant({ do: 'again' as const }) },
  ),
  { minLength: 10, maxLength: 20 },
);

function bodyOf({ operation, from, days }: Step & { do: 'response' }, listing: Listing): Buffer {
  const times = listing.saved === 0 ? {} : { SavedAt: SAVED[listing.saved] };
  const records = DAYS.slice(from, from + days + 1).flatMap((day) =>
    Array.from({ length: listing.count + (listing.twice ? 1 : 0) }, (_, at) => {
      const [year, month, date] = day.split('-');
      const name = `S${listing.first + (at % Math.max(1, listing.count))}`;
      return operation === 'GetBhavCopyCM'
        ? {
            TradDt: `${month}-${date}-${year}`,
            Src: 'NSE',
            Symbol: name,
            SctySrs: 'EQ',
            FinInstrmNm: name,
            ClosePrice: listing.value,
            ...times,
          }
        : {
            ChangeDate: `${month}-${date}-${year}`,
            ScripId: name,
            ScripName: `V${listing.value}`,
            PrevSeries: 'EQ',
            ToSeries: 'BE',
            ...times,
          };
    }),
  );
  const all = listing.refused ? [...records, { Unknown: 1 }] : records;
  return Buffer.from(
    JSON.stringify({ Value: all, ...(listing.odd && all.length > 0 ? { Count: all.length - 1 } : {}) }),
  );
}

let fast: Context;
let full: Context;
beforeAll(async () => {
  [fast, full] = (await Promise.all(
    [1, 2].map(() => openStore(undefined, { EOD_MAX_REJECT_SHARE: '0.9' })),
  )) as [Context, Context];
});

const USED = ['bhavcopy_cm', 'series_changes'];

async function empty({ db }: Context): Promise<number> {
  const both = USED.flatMap((name) => [`market.${name}`, `market_history.${name}`]);
  await db.pool.query(
    `truncate ${both.join(', ')}, etl.runs, etl.windows, etl.loads, etl.withdrawals, etl.rejected_records,
       etl.responses, etl.response_bodies, etl.coverage restart identity cascade`,
  );
  return newRun(db);
}

/**
 * Everything that is stored, but for the times at which it was. Loads have numbers in their order: a repeat that turns out
 * to be none is rolled back, and leaves a gap in their ids.
 */
async function contents({ db }: Context) {
  const without = (table: string, columns: string) =>
    `select '${table}' as kind, (to_jsonb(t) - '{${columns}}'::text[])::text as text from ${table} t`;
  const result = await db.pool.query<{ kind: string; text: string }>(
    [
      ...USED.map((name) => without(`market.${name}`, 'first_loaded_at,last_changed_at')),
      ...USED.map((name) =>
        without(`market_history.${name}`, 'first_loaded_at,last_changed_at,valid_from,valid_to'),
      ),
      without('etl.windows', 'started_at,finished_at'),
      without('etl.loads', 'committed_at'),
      without('etl.coverage', 'checked_at'),
      without('etl.rejects', 'resolved_at'),
      `select 'resolved', (id, resolved_at is null)::text from etl.rejects`,
      without('etl.withdrawals', 'noted_at'),
      without('etl.responses', ''),
    ].join(' union all '),
  );
  const ids = await db.pool.query<{ id: string }>('select id from etl.loads order by id');
  const numbers = new Map(ids.rows.map(({ id }, at) => [id, String(at + 1)]));
  const numbered = (text: string, name: RegExp) =>
    text.replaceAll(name, (_, before: string, id: string) => `${before}${numbers.get(id)}`);
  return result.rows
    .map(({ kind, text }) => {
      const row = numbered(text, /("(?:load_id|replaced_by_load_id)": )(\d+)/g);
      return `${kind} ${kind === 'etl.loads' ? numbered(row, /("id": )(\d+)/g) : row}`;
    })
    .sort();
}

let repeated = 0;

/** Loads a response as a worker does. @returns what became of its records. */
async function loadStep(
  context: Context,
  runId: number,
  step: Step & { do: 'response' },
  listing: Listing,
  position: number,
) {
  const operation = operationNamed(step.operation);
  const requested = {
    exchange: 'NSE',
    from: DAYS[step.from] as string,
    to: DAYS[step.from + step.days] as string,
    instruments: step.part === 'instruments' ? ['S1'] : [],
    params: {},
    calledOn: '2025-10-22',
  };
  const filtered = step.part === 'filtered';
  const window = { ...requested, runId, operation: operation.name, variant: '', filtered };
  const id = await newWindow(context.db, runId, 'running', window);
  const body = bodyOf(step, listing);
  const calledAt = FIRST_CALL + (step.late ? -60_000 : 60_000) * (position + 1);
  const raw = { body, contentType: 'application/json', bytes: body.length };
  const response = {
    window: { ...window, id },
    position: positionOf(calledAt),
    calledAt,
    bytes: body.length,
    digest: step.kept ? undefined : digestResponse(context, window, sha256(body)),
    response: {
      packed: await packBody(context.db.drizzle, body),
      contentType: raw.contentType,
      calledOn: requested.calledOn,
    },
  };
  if (context === fast && response.digest !== undefined) {
    const { digest } = response;
    const counts = await repeatLoad(
      context.db,
      { ...describeResponse(response), digest },
      requested.calledOn,
    );
    if (counts !== null) {
      repeated += 1;
      return counts;
    }
  }
  const extracted = readResponse(operation, requested, raw, { accessKey: '', timeZone: 'Asia/Kolkata' });
  return (await storeResponse(context, { ...response, extracted }))?.counts ?? null;
}

type ResponseStep = Exclude<Step, { do: 'again' }>;

/** Steps with what they mean in place of "again". */
function spelledOut(sequence: readonly Step[]): ResponseStep[] {
  let last: ResponseStep | undefined;
  return sequence.flatMap((step) => {
    if (step.do === 'response') last = step;
    return last ?? [];
  });
}

describe('a response that was loaded before', () => {
  test('is not read by a worker', async () => {
    const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };
    const pipeline = await openPipeline({ sandbox: { clock, instrumentsPerExchange: 30 }, clock });
    const lines: { readonly msg: string; readonly ms?: StepTimes }[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const request = {
      operations: ['GetBhavCopyCM'],
      exchanges: ['NSE'],
      from: '2025-09-01',
      to: '2025-09-03',
    };
    const first = await runToEnd({ ...pipeline, log }, backfill(request));
    const again = await runToEnd({ ...pipeline, log }, backfill({ ...request, force: true }));
    expect(first).toMatchObject({ windows: { loaded: 3 }, fetched: first.inserted });
    expect(again).toMatchObject({ windows: { loaded: 3 }, fetched: first.fetched, unchanged: first.fetched });
    const steps = lines.flatMap(({ msg, ms }) =>
      msg === 'window loaded' ? [Object.keys(ms ?? {}).sort()] : [],
    );
    const all = ['claim', 'fetch', 'load', 'read'];
    expect(steps).toEqual([...Array(3).fill(all), ...Array(3).fill(all.slice(0, 3))]);
    const { rows } = await pipeline.db.pool.query(
      'select count(*)::int as responses, count(distinct hash)::int as bodies from etl.responses',
    );
    expect(rows).toEqual([{ responses: 6, bodies: 3 }]);
  });

  test('ends as if it had been read, after any sequence of loads', async () => {
    await forAllAsync([listings, steps], { numRuns: RUNS, seed: 20_250_829 }, async (all, sequence) => {
      const [runId] = await Promise.all([empty(fast), empty(full)]);
      for (const [position, step] of spelledOut(sequence).entries()) {
        const [quick, slow] = await Promise.all(
          [fast, full].map((context) =>
            loadStep(context, runId, step, all[step.listing] as Listing, position),
          ),
        );
        expect(quick).toEqual(slow);
      }
      expect(await contents(fast)).toEqual(await contents(full));
    });
    expect(repeated).toBeGreaterThan(setsOf(RUNS) / 2);
    console.log(`${repeated} responses were not read again`);
  }, 1_800_000);
});
