import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { decideEvent } from '../../../src/jobs/events/decide-event.ts';
import { updateDerived } from '../../../src/jobs/events/update-derived.ts';
import { updatePriceFactors } from '../../../src/load/price-tables.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { load } from '../../load/support.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { importInto, openStore, test } from '../../support/import-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

type Context = Awaited<ReturnType<typeof openStore>>;

const folder = temporaryFolder();
let files = 0;
const importLines = (context: Context, lines: readonly string[]) => {
  const path = join(folder, `${++files}.csv`);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return importInto(context, [path]);
};

const ISINS = { A: 'INE000A01010', B: 'INE000B01018' };
const SHARES = ['A', 'B'] as const;
const DAYS = ['2026-08-10', '2026-08-11', '2026-08-13', '2026-08-14', '2026-08-18', '2026-08-19'] as const;
const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ');

/** A trading day of NSE: by symbol, the ISIN of whose share it has. */
const pricesOfNse = (context: Context, day: string, isins: Readonly<Record<string, string>>) => {
  const [year, month, date] = day.split('-');
  return importLines(context, [
    'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN,',
    ...Object.entries(isins).map(
      ([symbol, isin]) =>
        `${symbol},EQ,100,100,100,100,100,100,100,10000,${date}-${MONTHS[Number(month) - 1]}-${year},5,${isin},`,
    ),
  ]);
};

const pricesOfBse = (context: Context, day: string) =>
  importLines(context, [
    'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,XpryDt,FininstrmActlXpryDt,StrkPric,OptnTp,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,UndrlygPric,SttlmPric,OpnIntrst,ChngInOpnIntrst,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty,Rmks,Rsvd1,Rsvd2,Rsvd3,Rsvd4',
    ...SHARES.map(
      (share, at) =>
        `${day},${day},CM,BSE,STK,${500_001 + at},${ISINS[share]},${share}LTD,A,,,,,${share},100,100,100,100,100,100,,,,,40,4000,8,F1,1,,,,,`,
    ),
  ]);

const listOf = (context: Context, lines: readonly string[]) =>
  importLines(context, ['exchange,symbol,ex_date,kind,ratio,note', ...lines]);

const actions = operationNamed('GetCorporateActions').shapes[0].table;

/** The source service sends a corporate action, or corrects one: its id is the same, its day may be another. */
async function announce(
  context: Context,
  { id, exDate, type, detail }: { id: string; exDate: string | null; type: string; detail: string },
) {
  const blank = Object.fromEntries(actions.fields.map(({ column }) => [column, null]));
  const row = {
    ...blank,
    exchange: 'NSE',
    scrip_code: 0,
    action_id: id,
    symbol: 'A',
    corporate_action_type: type,
    ratio_amount: detail,
    prov_xdate: exDate,
  };
  await load(context.db, { batches: [{ table: actions, rows: [row] }] });
  await updateDerived(context);
}

const COLUMNS =
  'event_id, exchange, symbol, ex_date::text, kind, item, instrument_id, ratio_new, ratio_old, amount::text, status, status_reason, listed_by';

/** What is stored of factors, which has to be what follows from the events. */
async function keptFactors({ db }: Pick<Context, 'db'>) {
  const columns = 'exchange, share_id, known_from, known_to, valid_from, valid_to, ratio_old, ratio_new';
  const { rows } = await db.pool.query<{ kept: string[]; computed: string[] }>(
    `select array(select (${columns})::text from etl.price_factors order by 1) as kept,
            array(select (s.exchange, s.instrument_id, k.*)::text
                    from (select distinct exchange, instrument_id from market.corporate_events where instrument_id is not null) s
                   cross join lateral etl.share_kept_factors(s.exchange, s.instrument_id) k order by 1) as computed`,
  );
  const { kept = [], computed = [] } = rows[0] ?? {};
  expect(kept).toEqual(computed);
  return kept;
}

/** Events and adjusted prices, without what says when they were written. */
async function readEventsAndPrices({ db }: Context) {
  await keptFactors({ db });
  for (const asOf of ['2026-08-11', '2026-08-14', '2026-12-31']) {
    const { rows } = await db.pool.query(
      `(select p::text from market.adjusted_prices($1) p except all select p::text from market.adjusted_prices($1, false) p)
       union all (select p::text from market.adjusted_prices($1, false) p except all select p::text from market.adjusted_prices($1) p)`,
      [asOf],
    );
    expect(rows, asOf).toEqual([]);
  }
  const events = await db.pool.query(`select ${COLUMNS} from market.corporate_events order by 1`);
  const prices = await db.pool.query(
    `select exchange, symbol, trade_date::text, price_factor::text from market.adjusted_prices('2026-12-31') order by 1, 2, 3`,
  );
  const factors = await db.pool.query(
    `select exchange, instrument_id, valid_from::text, ratio_old, ratio_new from market.price_factors('2026-12-31') order by 1, 2, 3`,
  );
  return { events: events.rows, prices: prices.rows, factors: factors.rows };
}

/** The same, computed from notices, owners of symbols and decisions alone. */
async function seenFromNothing(context: Context) {
  await context.db.pool.query(
    'truncate market.corporate_events, market_history.corporate_events, etl.derived',
  );
  await updateDerived(context);
  return readEventsAndPrices(context);
}

const factorOf = async ({ db }: Context, day: string) =>
  (
    await db.pool.query<{ factor: string }>(
      `select trim_scale(price_factor)::text as factor from market.adjusted_prices('2026-12-31') where exchange = 'NSE' and symbol = 'A' and trade_date = $1`,
      [day],
    )
  ).rows[0]?.factor;

const ids = async ({ db }: Context) =>
  (
    await db.pool.query<{ id: string }>(
      `select event_id || ' ' || status as id from market.corporate_events order by 1`,
    )
  ).rows.map(({ id }) => id);

const day = fc.constantFrom(...DAYS);

/** Steps of a stream, each with what it is called in a failure. */
const step: fc.Arbitrary<readonly [name: string, run: (context: Context) => Promise<unknown>]> = fc.oneof(
  fc
    .record({
      id: fc.constantFrom('17', '18'),
      exDate: fc.option(day, { freq: 6 }),
      type: fc.constantFrom('Bonus issue', 'Dividend'),
      detail: fc.constantFrom('1:1', '5'),
    })
    .map(
      (action) =>
        [`announce ${JSON.stringify(action)}`, (context: Context) => announce(context, action)] as const,
    ),
  fc
    .record({
      line: fc.constantFrom('NSE,A', 'NSE,B', 'NSE,NEW', 'BSE,ALTD', 'BSE,BLTD'),
      exDate: day,
      event: fc.constantFrom('split,2:1', 'split,5:1', 'bonus,1:1', 'dividend,5'),
    })
    .map(({ line, exDate, event }) => {
      const listed = `${line},${exDate},${event},`;
      return [`list ${listed}`, (context: Context) => listOf(context, [listed])] as const;
    }),
  day.map((at) => [`prices of NSE ${at}`, (context: Context) => pricesOfNse(context, at, ISINS)] as const),
  day.map((at) => [`prices of BSE ${at}`, (context: Context) => pricesOfBse(context, at)] as const),
  day.map(
    (at) =>
      [
        `other owners ${at}`,
        (context: Context) => pricesOfNse(context, at, { A: ISINS.B, NEW: ISINS.A }),
      ] as const,
  ),
  fc
    .tuple(
      fc.constantFrom('NSE:A', 'NSE:NEW', 'BSE:ALTD'),
      day,
      fc.constantFrom('split', 'bonus'),
      fc.constantFrom('ignore', '3:1', 'reset'),
    )
    .map(
      ([line, at, kind, terms]) =>
        [
          `decide ${line}:${at}:${kind} ${terms}`,
          (context: Context) =>
            decideEvent(
              context,
              `${line}:${at}:${kind}`,
              terms === 'ignore' ? null : terms === 'reset' ? 'reset' : { new: 3, old: 1 },
            ).catch((error) => {
              if (terms !== 'reset') throw error;
            }),
        ] as const,
    ),
);

describe('corporate events and adjusted prices equal those computed from nothing', () => {
  test('after a corrected ex-date', async ({ context }) => {
    await pricesOfNse(context, '2026-08-10', ISINS);
    const bonus = { id: '17', type: 'Bonus issue', detail: '1:1' };
    await announce(context, { ...bonus, exDate: '2026-08-13' });
    expect(await factorOf(context, '2026-08-10')).toBe('0.5');
    await announce(context, { ...bonus, exDate: '2026-08-18' });
    expect(await ids(context)).toEqual(['NSE:A:2026-08-18:bonus applied']);
    expect(await factorOf(context, '2026-08-10')).toBe('0.5');
    const { rows } = await context.db.pool.query(
      `select ex_date::text, withdrawn from market_history.corporate_events`,
    );
    expect(rows).toEqual([{ ex_date: '2026-08-13', withdrawn: true }]);
    // The state before the correction, and what the correction changed, can still be queried.
    const changes = await context.db.pool.query(
      `select change, ex_date::text from market_history.corporate_events_changes(market.state() - 1, market.state()) order by 1`,
    );
    expect(changes.rows).toEqual([
      { change: 'insert', ex_date: '2026-08-18' },
      { change: 'withdraw', ex_date: '2026-08-13' },
    ]);
    await announce(context, { ...bonus, exDate: null });
    expect(await ids(context)).toEqual([]);
    expect(await factorOf(context, '2026-08-10')).toBe('1');
  });

  test('after the own list of an exchange has the event on another day than the one it was copied from', async ({
    context,
  }) => {
    await pricesOfNse(context, '2026-08-10', ISINS);
    await pricesOfBse(context, '2026-08-10');
    await listOf(context, ['NSE,A,2026-08-13,split,2:1,']);
    expect(await ids(context)).toEqual([
      'BSE:ALTD:2026-08-13:split applied',
      'NSE:A:2026-08-13:split applied',
    ]);
    await listOf(context, ['BSE,ALTD,2026-08-14,split,2:1,']);
    expect(await ids(context)).toEqual([
      'BSE:ALTD:2026-08-14:split applied',
      'NSE:A:2026-08-13:split applied',
    ]);
  });

  test('after decisions about one event under two symbols, of which the last one counts', async ({
    context,
  }) => {
    await pricesOfNse(context, '2026-08-10', ISINS);
    await pricesOfNse(context, '2026-08-18', { NEW: ISINS.A });
    await listOf(context, ['NSE,A,2026-08-13,split,2:1,', 'NSE,NEW,2026-08-13,split,2:1,']);
    for (const [symbol, ratio, factor] of [
      ['A', { new: 4, old: 1 }, '0.25'],
      ['NEW', { new: 5, old: 1 }, '0.2'],
      ['A', { new: 2, old: 1 }, '0.5'],
      ['NEW', null, '1'],
      ['A', { new: 10, old: 1 }, '0.1'],
      ['NEW', { new: 8, old: 1 }, '0.125'],
    ] as const) {
      await decideEvent(context, `NSE:${symbol}:2026-08-13:split`, ratio);
      expect(await factorOf(context, '2026-08-10')).toBe(factor);
    }
    const left = await readEventsAndPrices(context);
    expect(left).toEqual(await seenFromNothing(context));
  });

  test('at the next run of a database that kept events that do not follow, which is logged', async ({
    context,
  }) => {
    await pricesOfNse(context, '2026-08-10', ISINS);
    await listOf(context, ['NSE,A,2026-08-18,split,2:1,']);
    // As an earlier version left it.
    await context.db.pool.query(
      `insert into market.corporate_events select (jsonb_populate_record(e, '{"ex_date": "2026-08-13", "event_id": "NSE:A:2026-08-13:split"}')).* from market.corporate_events e`,
    );
    await updatePriceFactors(context.db.drizzle);
    await context.db.pool.query(`update etl.derived set version = 'an earlier version'`);
    expect(await factorOf(context, '2026-08-10')).toBe('0.25');
    const logged: string[] = [];
    const warn = (facts: { exchange: string; events: number }, message: string) =>
      logged.push(`${facts.exchange} ${facts.events} ${message}`);
    const log = Object.assign(Object.create(context.log), { warn });
    await updateDerived({ ...context, log });
    expect(await factorOf(context, '2026-08-10')).toBe('0.5');
    expect(logged).toEqual([
      'NSE 1 withdrew corporate events that no longer follow from the notices, the owners of symbols and the decisions',
    ]);
  });

  test('with each line read as its list means it, whatever other lists have of it, in any order', async () => {
    const EXPORT = 'SYMBOL,COMPANY NAME,SERIES,PURPOSE,FACE VALUE,EX-DATE,RECORD DATE';
    const DAILY = 'SERIES,SYMBOL,SECURITY,RECORD_DT,BC_STRT_DT,BC_END_DT,EX_DT,ND_STRT_DT,ND_END_DT,PURPOSE';
    const lists = [
      // An export has the symbols of its day: A is now the share that was B on the ex-date.
      [EXPORT, 'B,B Ltd,EQ,Dividend - Rs 1,10,13-Aug-2026,-', 'A,A Ltd,EQ,Dividend - Rs 2,-,13-Aug-2026,-'],
      // It corrects the only line with a face value of the export before.
      [EXPORT, 'B,B Ltd,EQ,Dividend - Rs 1,10,13-Aug-2026,14-Aug-2026'],
      [DAILY, 'EQ,A,A Ltd,,,,11/08/2026,,,DIVIDEND - RS 3'],
      [EXPORT, 'A,A Ltd,EQ,DIVIDEND - RS 3,10,11-Aug-2026,-'],
    ];
    const eventsAfter = async (order: readonly number[]) => {
      const context = await openStore();
      await pricesOfNse(context, '2026-08-10', ISINS);
      await pricesOfNse(context, '2026-08-18', { A: ISINS.B, NEW: ISINS.A });
      for (const at of order) await importLines(context, lists[at] ?? []);
      const { events } = await readEventsAndPrices(context);
      return events.map(
        ({ symbol, amount, instrument_id }) => `${symbol} ${Number(amount)} ${instrument_id}`,
      );
    };
    const expected = [
      expect.stringMatching(/^A 3 .*A01010/),
      expect.stringMatching(/^A 2 .*B01018/),
      expect.stringMatching(/^B 1 .*B01018/),
    ];
    for (const order of [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [1, 0, 3, 2],
    ])
      expect(await eventsAfter(order), order.join()).toEqual(expected);
  });

  test('after any statements that change events', async () => {
    const { db } = await openStore();
    const event = fc.record({
      share: fc.constantFrom('NSE:A', 'NSE:B'),
      symbol: fc.constantFrom('A', 'OLD'),
      at: day,
      ratio: fc.option(fc.constantFrom(2, 3, 5)),
      status: fc.constantFrom('applied', 'needs_review', 'ignored'),
      reason: fc.option(fc.constant('decided by a person')),
    });
    const insert = `insert into market.corporate_events (exchange, symbol, ex_date, kind, item, instrument_id, ratio_new, ratio_old, status, status_reason,
        first_loaded_at, last_changed_at, revision, run_id, load_id)
      select 'NSE', e->>'symbol', (e->>'at')::date, 'split', '', e->>'share', (e->>'ratio')::int, 1, e->>'status', e->>'reason', now(), now(), 1, 1, 1
        from jsonb_array_elements($1) e`;
    const all = '$1::jsonb is not null';
    const statements = [
      `${insert} on conflict do nothing`,
      `${insert} on conflict (exchange, symbol, ex_date, kind, item) do update
         set instrument_id = excluded.instrument_id, ratio_new = excluded.ratio_new, status = excluded.status, status_reason = excluded.status_reason`,
      `merge into market.corporate_events m using (select e->>'symbol' as symbol, (e->>'at')::date as at from jsonb_array_elements($1) e) c
          on m.symbol = c.symbol and m.ex_date = c.at when matched and m.ratio_new is null then delete when matched then update set status = 'applied'`,
      `update market.corporate_events set instrument_id = case instrument_id when 'NSE:A' then 'NSE:B' else 'NSE:A' end where ${all} and symbol = 'OLD'`,
      `update market.corporate_events set ex_date = ex_date + 30 where ${all} and ratio_new = 2`,
      `delete from market.corporate_events where ${all} and ratio_new = 5`,
    ];
    await forAllAsync(
      [
        fc.array(
          fc.tuple(
            fc.constantFrom(...statements),
            fc.uniqueArray(event, { maxLength: 4, selector: ({ symbol, at }) => `${symbol} ${at}` }),
          ),
          { minLength: 4, maxLength: 10 },
        ),
      ],
      { numRuns: 10 },
      async (steps) => {
        await db.pool.query('truncate market.corporate_events');
        await updatePriceFactors(db.drizzle);
        expect(await keptFactors({ db })).toEqual([]);
        for (const [statement, events] of steps) {
          await db.pool.query(statement, [JSON.stringify(events)]).catch((error) => {
            if (error.code !== '23505' && error.cause?.code !== '23505') throw error;
          });
          await updatePriceFactors(db.drizzle);
          await keptFactors({ db });
        }
      },
    );
  });

  test('after any stream of notices, lists, corrections, renames, prices and decisions', async () => {
    await forAllAsync(
      [fc.array(step, { minLength: 6, maxLength: 14 })],
      { numRuns: 2, endOnFailure: true },
      async (steps) => {
        const context = await openStore();
        for (const [, run] of steps) await run(context);
        const left = await readEventsAndPrices(context);
        expect(left, steps.map(([name]) => name).join('\n')).toEqual(await seenFromNothing(context));
      },
    );
  });
});
