import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { decideEvent } from '../../../src/jobs/events/decide-event.ts';
import { updateDerived } from '../../../src/jobs/events/update-derived.ts';
import { countUnderived } from '../../../src/state/derived.ts';
import { spawnEod } from '../../support/eod.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { importInto, openStore, test } from '../../support/import-support.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { acceptRefused, replay, requestAndLoad } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';

type Context = Awaited<ReturnType<typeof openStore>>;

/** Tables that are derived, and the columns that say what follows from the rows; others say when it was written. */
const DERIVED: Readonly<Record<string, string>> = {
  'etl.observed_aliases':
    'exchange, source, symbol, series, isin, scrip_code, name, link, first_seen, last_seen, instrument_id, precedence',
  'etl.alias_owners': 'exchange, kind, symbol, series, valid_from, valid_to, instrument_id, share_id',
  'market.corporate_events':
    'event_id, exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, status, status_reason, listed_by',
  'etl.price_factors': 'exchange, share_id, known_from, known_to, valid_from, valid_to, ratio_old, ratio_new',
  'etl.event_sessions': 'exchange, symbol, trade_date',
  'etl.hit_bands': 'exchange, trade_date, symbol, series, bands',
  "market.adjusted_prices('2026-12-31')":
    'exchange, symbol, series, trade_date, instrument_id, close_price, price_factor, has_unreviewed_event',
  'market.prices': 'exchange, symbol, series, trade_date, adjusted_previous_close_price, band_hit',
};

async function contents({ db }: Context): Promise<Record<string, string[]>> {
  const derivedRows: Record<string, string[]> = {};
  for (const [name, columns] of Object.entries(DERIVED)) {
    const { rows } = await db.pool.query<{ row: string }>(
      `select (${columns})::text as row from ${name} order by 1`,
    );
    derivedRows[name] = rows.map(({ row }) => row);
  }
  return derivedRows;
}

async function contentsFromNothing(context: Context) {
  await context.db.pool.query(`
    truncate etl.observed_aliases, etl.alias_owners, etl.price_factors, etl.event_sessions, etl.hit_bands, etl.derived,
             market.corporate_events, market_history.corporate_events`);
  await updateDerived(context);
  return contents(context);
}

const folder = temporaryFolder();
let files = 0;
const writeList = (line: string, note = ''): string => {
  const path = join(folder, `${++files}.csv`);
  writeFileSync(path, `exchange,symbol,ex_date,kind,ratio,note\n${line},${note}\n`);
  return path;
};
const importList = (context: Context, line: string) => importInto(context, [writeList(line)]);

const [A, B] = ['INE000A01010', 'INE000B01018'];
// The first is years before the others.
const DAYS = ['2021-08-10', '2026-08-10', '2026-08-11', '2026-08-13', '2026-08-14'] as const;
const day = fc.constantFrom(...DAYS);
const sent = (text: string) => `${text.slice(5)}-${text.slice(0, 4)}`;

/** What a step does, and what it is called in a failure. A run leaves nothing that is not derived. */
interface Step {
  readonly name: string;
  readonly isRun?: boolean;
  readonly run: (context: Context) => Promise<unknown>;
}

let microseconds = 0;

/** A response of any time of the evening, so that many come after others that were requested later. */
const respond = (
  context: Context,
  operation: string,
  { exchange, from, minute }: { exchange: string; from: string; minute: number },
  records: readonly Record<string, unknown>[],
) =>
  requestAndLoad(context, {
    ...{ operation, exchange, from, sent: records },
    calledAt: Date.UTC(2026, 7, 20, 16, minute),
    microseconds: ++microseconds % 1_000,
  });

const prices: fc.Arbitrary<Step> = fc
  .record({
    from: day,
    minute: fc.integer({ min: 1, max: 20 }),
    lines: fc.uniqueArray(
      fc.record({
        symbol: fc.constantFrom('A', 'B', 'OLD'),
        series: fc.constantFrom('EQ', 'BE'),
        isin: fc.constantFrom(A, B, null),
        close: fc.integer({ min: 90, max: 110 }),
      }),
      { maxLength: 4, selector: ({ symbol, series }) => `${symbol} ${series}` },
    ),
  })
  .map(({ from, minute, lines }) => ({
    name: `prices ${from} at :${minute} ${JSON.stringify(lines)}`,
    run: (context) =>
      respond(
        context,
        'GetBhavCopyCM',
        { exchange: 'NSE', from, minute },
        lines.map(({ symbol, series, isin, close }) => ({
          ...{ TradDt: sent(from), Src: 'NSE', Symbol: symbol, SctySrs: series, ISIN: isin },
          ...{ ClosePrice: close, PrevClosePrice: 100 },
        })),
      ),
  }));

const bands: fc.Arbitrary<Step> = fc
  .record({
    from: day,
    minute: fc.integer({ min: 1, max: 20 }),
    hits: fc.uniqueArray(
      fc.record({ ScripId: fc.constantFrom('A', 'B', 'B.BE'), Band: fc.constantFrom('H', 'L') }),
      { minLength: 1, maxLength: 4, selector: ({ ScripId, Band }) => ScripId + Band },
    ),
  })
  .map(({ from, minute, hits }) => ({
    name: `bands ${from} at :${minute} ${JSON.stringify(hits)}`,
    run: (context) =>
      respond(
        context,
        'GetCircuitBreakers',
        { exchange: 'NSE', from, minute },
        hits.map((hit) => ({ ...hit, Date: sent(from), Series: hit.ScripId.endsWith('.BE') ? 'BE' : 'EQ' })),
      ),
  }));

const list: fc.Arbitrary<Step> = fc
  .record({
    symbol: fc.constantFrom('A', 'B', 'OLD'),
    exDate: day,
    event: fc.constantFrom('split,2:1', 'split,5:1', 'bonus,1:1'),
  })
  .map(({ symbol, exDate, event }) => {
    const line = `NSE,${symbol},${exDate},${event}`;
    return { name: `list ${line}`, isRun: true, run: (context) => importList(context, line) };
  });

const decision: fc.Arbitrary<Step> = fc
  .record({ symbol: fc.constantFrom('A', 'B'), exDate: day, isIgnored: fc.boolean() })
  .map(({ symbol, exDate, isIgnored }) => ({
    name: `decide ${symbol} ${exDate} ${isIgnored}`,
    run: (context) =>
      decideEvent(context, `NSE:${symbol}:${exDate}:split`, isIgnored ? null : { new: 3, old: 1 }),
  }));

/** A process that cannot write this table ends there, and leaves the rest undone. */
const interruption: fc.Arbitrary<Step> = fc
  .constantFrom(
    ...Object.keys(DERIVED).filter((name) => !/adjusted|prices$/.test(name)),
    'etl.derived',
    'etl.loads',
  )
  .map((table) => ({
    name: `interrupted at ${table}`,
    run: async (context) => {
      const { pool } = context.db;
      await pool.query(`
        create or replace function etl.refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
        create trigger refuse before insert or update or delete on ${table} for each row execute function etl.refuse()`);
      await updateDerived(context).catch((error) => expect(error).toMatchObject({ message: /refused/ }));
      await pool.query(`drop trigger refuse on ${table}`);
    },
  }));

let kills = 0;

/** A process that imports a list and is killed so long after its run has begun; the list is imported again. */
const killed: fc.Arbitrary<Step> = fc
  .record({ ms: fc.integer({ min: 0, max: 400 }), symbol: fc.constantFrom('A', 'B'), exDate: day })
  .map(({ ms, symbol, exDate }) => ({
    name: `killed ${ms} ms after it began to import a split of ${symbol} on ${exDate}`,
    run: async (context) => {
      const path = writeList(`NSE,${symbol},${exDate},split,10:1`, `no other file is like ${files}`);
      const countRuns = async () =>
        (await context.db.pool.query<{ runs: number }>('select count(*)::int as runs from etl.runs')).rows[0]
          ?.runs ?? 0;
      const before = await countRuns();
      const doomed = spawnEod(['import', path], {
        env: { DATABASE_URL: context.config.DATABASE_URL ?? '' },
        cwd: folder,
      });
      await waitFor(async () => (await countRuns()) > before, { everyMs: 5, what: 'the run of the import' });
      await pause(ms);
      doomed.kill('SIGKILL');
      kills += (await doomed.ended).signal === 'SIGKILL' ? 1 : 0;
      await importInto(context, [path]);
    },
  }));

const steps: fc.Arbitrary<Step> = fc.oneof(
  ...(isSlowLayer ? [{ weight: 1, arbitrary: killed }] : []),
  { weight: 8, arbitrary: prices },
  { weight: 4, arbitrary: bands },
  { weight: 3, arbitrary: list },
  { weight: 2, arbitrary: decision },
  { weight: 2, arbitrary: interruption },
  fc.constant<Step>({
    name: 'three processes derive',
    run: async (context) => {
      await Promise.all([1, 2, 3].map(() => updateDerived(context)));
      expect(await countUnderived(context.db.drizzle)).toBe(0);
    },
  }),
  fc.constant<Step>({ name: 'accept a withdrawal', run: (context) => acceptRefused(context) }),
  fc.constant<Step>({
    name: 'replay',
    isRun: true,
    run: (context) =>
      replay(context, { operations: ['GetBhavCopyCM', 'GetCircuitBreakers'] }).catch((error) =>
        expect(error).toMatchObject({ message: 'there is nothing to replay' }),
      ),
  }),
);

describe('everything derived from the rows', () => {
  test('equals what is computed from nothing whenever no run is under way', async () => {
    const filledTables = new Set<string>();
    await forAllAsync(
      [fc.array(steps, { minLength: 8, maxLength: 20 })],
      { numRuns: 2, endOnFailure: true },
      async (all) => {
        const context = await openStore();
        // So that each set has some of everything, requested after all responses that come later.
        const entry = { exchange: 'NSE', from: DAYS[1], minute: 21 };
        const share = { TradDt: sent(DAYS[1]), Src: 'NSE', Symbol: 'A', SctySrs: 'EQ', ISIN: A };
        await respond(context, 'GetBhavCopyCM', entry, [{ ...share, ClosePrice: 100, PrevClosePrice: 100 }]);
        await respond(context, 'GetCircuitBreakers', entry, [
          { Date: sent(DAYS[1]), ScripId: 'A', Series: 'EQ', Band: 'H' },
        ]);
        await importList(context, `NSE,A,${DAYS[2]},split,2:1`);
        const names = all.map(({ name }) => name).join('\n');
        for (const { run, isRun = false } of all) {
          await run(context);
          if (isRun) expect(await countUnderived(context.db.drizzle), names).toBe(0);
        }
        await updateDerived(context);
        const left = await contents(context);
        for (const [name, rows] of Object.entries(left)) if (rows.length > 0) filledTables.add(name);
        expect(left, names).toEqual(await contentsFromNothing(context));
      },
    );
    expect([...filledTables].sort()).toEqual(Object.keys(DERIVED).sort());
    if (isSlowLayer) expect(kills).toBeGreaterThan(0);
  });
});
