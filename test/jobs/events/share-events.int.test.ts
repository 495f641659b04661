import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { priceEffectText } from '../../../src/core/wording.ts';
import { exportTable } from '../../../src/export/export-table.ts';
import { decideEvent, ignoreEvents, smallEvents } from '../../../src/jobs/events/decide-event.ts';
import { listEvents } from '../../../src/load/corporate-events.ts';
import { checkQuality } from '../../../src/quality/check-quality.ts';
import { listFindings } from '../../../src/state/findings.ts';
import { SMALL_EFFECT } from '../../../src/state/issue-kinds.ts';
import { readIssues } from '../../../src/state/issues.ts';
import { issueCommand } from '../../../src/web/commands.ts';
import { runCli } from '../../support/cli.ts';
import { sample } from '../../support/for-all.ts';
import { importInto, newFile, openStore } from '../../support/import-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty';

/** A trading day of one exchange with its own line of the same share, and another share. */
const tradingDay = (exchange: string, [id, symbol, series]: readonly [number, string, string]) =>
  newFile(`${exchange}.csv`, [
    HEADER,
    `2024-01-01,2024-01-01,CM,${exchange},STK,${id},INE467B01029,${symbol},${series},TCS LTD,100,100,100,100,100,100,10,1000,3,F1,1`,
    `2024-01-01,2024-01-01,CM,${exchange},STK,${id + 1},INE0${exchange}01011,ONLY${exchange},${series},ONLY LTD,100,100,100,100,100,100,10,1000,3,F1,1`,
  ]);

/** Opens a store with a trading day of both exchanges and a list of events. */
async function storeWith(events: readonly string[]) {
  const context = await openStore();
  await importInto(context, [
    tradingDay('NSE', [11_536, 'TCS', 'EQ']),
    tradingDay('BSE', [532_540, 'TCSLTD', 'A']),
    newFile('events.csv', ['exchange,symbol,ex_date,kind,ratio,note', ...events]),
  ]);
  return context;
}

test('market.share_events have one row an event, whichever exchanges list it, so that dividends add up', async () => {
  const context = await storeWith([
    'NSE,TCS,2024-01-19,dividend,27,',
    'NSE,TCS,2024-05-16,dividend,28,',
    'BSE,TCSLTD,2024-05-16,dividend,28,',
    'BSE,TCSLTD,2024-07-19,dividend,10,',
    'BSE,ONLYBSE,2024-07-19,dividend,3,',
    'NSE,UNKNOWN,2024-07-19,split,2:1,',
  ]);
  const query = async (text: string) => (await context.db.pool.query(text)).rows;
  const events = () =>
    query(
      `select concat_ws(' ', exchange, symbol, ex_date, kind, array_to_string(exchanges, '+'), amount, status) as line
         from market.share_events order by ex_date, symbol`,
    ).then((rows) => rows.map(({ line }) => line));
  expect(await events()).toEqual([
    'NSE TCS 2024-01-19 dividend NSE 27 applied',
    'NSE TCS 2024-05-16 dividend BSE+NSE 28 applied',
    'BSE ONLYBSE 2024-07-19 dividend BSE 3 applied',
    'BSE TCSLTD 2024-07-19 dividend BSE 10 applied',
    'NSE UNKNOWN 2024-07-19 split NSE applied',
  ]);
  const [sums] = await query(
    `select (select sum(amount)::int from market.share_events where symbol like 'TCS%') as shares,
            (select sum(amount)::int from market.corporate_events where symbol like 'TCS%') as lines`,
  );
  expect(sums).toEqual({ shares: 65, lines: 130 });
  await decideEvent(context, 'BSE:TCSLTD:2024-05-16:dividend:28', null);
  expect(await events()).toContain('NSE TCS 2024-05-16 dividend BSE+NSE 28 ignored');
});

test('an event that each exchange has on a day of its own is one event, if the days are at most a week apart', async () => {
  const context = await storeWith([
    'NSE,TCS,2024-05-16,dividend,28,',
    'BSE,TCSLTD,2024-05-17,dividend,28,',
    // Of one exchange alone, a week later: another dividend.
    'NSE,TCS,2024-08-01,dividend,5,',
    'BSE,TCSLTD,2024-08-12,dividend,5,',
    // Two of the same amount, each on both exchanges.
    'NSE,TCS,2024-10-01,dividend,7,',
    'BSE,TCSLTD,2024-10-02,dividend,7,',
    'NSE,TCS,2024-10-07,dividend,7,',
    'BSE,TCSLTD,2024-10-08,dividend,7,',
  ]);
  const { rows } = await context.db.pool.query<{ line: string }>(
    `select concat_ws(' ', exchange, ex_date, array_to_string(exchanges, '+'), amount) as line
       from market.share_events where symbol like 'TCS%' order by ex_date`,
  );
  expect(rows.map(({ line }) => line)).toEqual([
    'NSE 2024-05-16 BSE+NSE 28',
    'NSE 2024-08-01 NSE 5',
    'BSE 2024-08-12 BSE 5',
    'NSE 2024-10-01 BSE+NSE 7',
    'NSE 2024-10-07 BSE+NSE 7',
  ]);
});

test.each(['NSE', 'BSE'])(
  'an event is decided on both exchanges together, whichever is named: %s',
  async (exchange) => {
    const context = await storeWith(['NSE,TCS,2024-06-03,demerger,,', 'BSE,TCSLTD,2024-06-04,demerger,,']);
    const ids = { NSE: 'NSE:TCS:2024-06-03:demerger', BSE: 'BSE:TCSLTD:2024-06-04:demerger' };
    const [id, other] = exchange === 'NSE' ? [ids.NSE, ids.BSE] : [ids.BSE, ids.NSE];
    const marked = async (asOf: string) =>
      (
        await context.db.pool.query(
          'select symbol from market.adjusted_prices($1) where has_unreviewed_event order by 1',
          [asOf],
        )
      ).rows.map(({ symbol }) => symbol);
    const waiting = async () =>
      (await readIssues(context.db.drizzle, { kinds: ['corporate_action'], exchanges: ['BSE'] }, 9)).issues;
    expect(await waiting()).toMatchObject([
      {
        exchange: 'NSE',
        exchanges: ['BSE', 'NSE'],
        id: ids.NSE,
        subject: 'TCS demerger',
        priority: 1,
        effect: null,
      },
    ]);
    expect(await marked('2024-07-01')).toEqual(['TCS', 'TCSLTD']);
    expect(await marked('2024-06-03')).toEqual(['TCS']);

    const decided = await decideEvent(context, id, { new: 5, old: 4 });
    const applied = { status: 'applied', ratio: '5:4' };
    expect(decided).toMatchObject({ id, ...applied, others: [{ id: other, ...applied }] });
    expect(await waiting()).toEqual([]);
    expect(await marked('2024-07-01')).toEqual([]);
    const reset = await decideEvent(context, other, 'reset');
    expect([reset?.status, reset?.others[0]?.status]).toEqual(['needs_review', 'needs_review']);
    expect(await marked('2024-07-01')).toEqual(['TCS', 'TCSLTD']);
  },
);

test('an event that one exchange lists is an issue of the other, whose prices it is about', async () => {
  const context = await storeWith(['BSE,TCSLTD,2024-06-04,demerger,,', 'BSE,ONLYBSE,2024-06-04,demerger,,']);
  const { issues } = await readIssues(context.db.drizzle, { exchanges: ['NSE'] }, 9);
  expect(issues.map(({ kind, exchanges }) => [kind, exchanges])).toEqual([
    ['corporate_action', ['BSE', 'NSE']],
  ]);
});

test('the lists of events are not read for columns that nobody selects', async () => {
  const { db } = await openStore();
  const plan = async (columns: string) =>
    (
      await db.pool.query(
        `explain verbose select ${columns} from market.prices_adjusted where symbol = 'TCS'`,
      )
    ).rows
      .map((row) => row['QUERY PLAN'])
      .join();
  expect(await plan('has_unreviewed_event')).toContain('events_review_idx');
  expect(await plan('is_before_event_lists')).toContain('corporate_action_notices');
  expect(await plan('trade_date, close_price, price_factor')).not.toMatch(/review|notices/);
});

interface Choice {
  readonly from?: string;
  readonly exchanges?: string[];
}

async function findingsOf(context: Awaited<ReturnType<typeof openStore>>, check: string) {
  await checkQuality(context, { from: '2024-06-03', to: '2024-06-03' });
  return (await listFindings(context.db.drizzle, { check, limit: 9 })).findings;
}

/** What an export of adjusted prices warns of. */
async function noticesOf(context: Awaited<ReturnType<typeof openStore>>, choice: Choice) {
  const fileFor = () => join(temporaryFolder(), 'prices.csv');
  const request = { table: 'prices_adjusted', format: 'csv', byYear: false, doubles: true } as const;
  const all = { ...request, ...choice, fileFor, onPartial: () => undefined };
  const limits = { timeoutMs: 0, signal: new AbortController().signal };
  return (await exportTable(context.db, all, limits)).notices;
}

const CF_CA =
  'SYMBOL,COMPANY NAME,SERIES,PURPOSE,FACE VALUE,EX-DATE,RECORD DATE,BOOK CLOSURE START DATE,BOOK CLOSURE END DATE';

/** A list of NSE with a bonus on each of these days, such as 03-Jun-2024. */
const list = (name: string, ...days: readonly string[]) =>
  newFile(name, [CF_CA, ...days.map((day) => `TCS,TCS LTD,EQ,Bonus 1:1,1,${day},${day},-,-`)]);

test('prices before the first list of the exchange are marked, found by checks, and warned of by exports', async () => {
  const context = await openStore();
  await importInto(context, [
    prices('2024-05-31', ['TCS', 90, 100, 100]),
    prices('2024-06-03', ['TCS', 100, 99, 99]),
  ]);
  const marked = async () =>
    (
      await context.db.pool.query(
        'select trade_date::text as day from market.prices_adjusted where is_before_event_lists order by 1',
      )
    ).rows.map(({ day }) => day);
  const findings = () => findingsOf(context, 'before_event_lists');
  const notices = (choice: Choice) => noticesOf(context, choice);
  // Without any list; a list of a user's own is none of the exchange.
  const ownList = newFile('own.csv', [
    'exchange,symbol,ex_date,kind,ratio,note',
    'NSE,TCS,2001-01-01,bonus,1:1,',
  ]);
  await importInto(context, [ownList]);
  expect(await marked()).toEqual(['2024-05-31', '2024-06-03']);
  expect(await findings()).toEqual([]);
  expect(await notices({})).toEqual([
    'no list of corporate actions of NSE is loaded: its prices are adjusted only for events that another exchange or a list of your own has (is_before_event_lists)',
  ]);

  await importInto(context, [list('CF-CA-2.csv', '03-Jun-2024')]);
  expect(await marked()).toEqual(['2024-05-31']);
  expect(await findings()).toMatchObject([
    {
      exchange: 'NSE',
      date: '2024-06-03',
      found: 'the first ex-date is 2024-06-03: earlier adjusted prices lack the splits and bonuses before it',
    },
  ]);
  expect(await notices({})).toEqual([
    'the loaded lists of corporate actions of NSE begin on 2024-06-03: earlier prices are adjusted only for events that another exchange or a list of your own has (is_before_event_lists)',
  ]);
  expect(await notices({ from: '2024-06-03' })).toEqual([]);
  expect(await notices({ exchanges: ['BSE'] })).toEqual([]);

  await importInto(context, [list('CF-CA-1.csv', '31-May-2024')]);
  expect([await marked(), await findings(), await notices({})]).toEqual([[], [], []]);
});

test('prices that go on for more than 30 days without a listed ex-date are found by checks, and warned of by exports', async () => {
  const context = await openStore();
  const readFindings = async () =>
    (await findingsOf(context, 'after_event_lists')).map((finding) => [finding.date, finding.found]).sort();
  const lacking = 'earlier adjusted prices lack the splits and bonuses of that time';
  const notice = (when: string) =>
    `the loaded lists of corporate actions of NSE ${when}: prices are not adjusted for splits and bonuses in those periods, unless another exchange or a list of your own has them`;
  await importInto(context, [
    prices('2024-06-03', ['TCS', 90, 100, 100]),
    prices('2024-07-03', ['TCS', 100, 99, 99]),
    list('CF-CA-1.csv', '03-Jun-2024'),
  ]);
  expect([await readFindings(), await noticesOf(context, {})]).toEqual([[], []]);

  await importInto(context, [prices('2024-07-04', ['TCS', 99, 99, 99])]);
  expect(await readFindings()).toEqual([['2024-06-03', `none after 2024-06-03: ${lacking}`]]);
  expect(await noticesOf(context, {})).toEqual([notice('end on 2024-06-03')]);
  expect(await noticesOf(context, { exchanges: ['BSE'] })).toEqual([]);

  // An announced ex-date of later days does not fill the days until then, nor does a list of a user's own.
  await importInto(context, [
    list('CF-CA-2.csv', '30-Aug-2024'),
    newFile('own.csv', ['exchange,symbol,ex_date,kind,ratio,note', 'NSE,TCS,2024-06-20,bonus,1:1,']),
  ]);
  expect(await readFindings()).toEqual([
    ['2024-06-03', `none between 2024-06-03 and 2024-08-30: ${lacking}`],
  ]);

  await importInto(context, [prices('2024-12-02', ['TCS', 99, 99, 99])]);
  expect((await readFindings()).map(([day]) => day)).toEqual(['2024-06-03', '2024-08-30']);
  expect(await noticesOf(context, {})).toEqual([notice('end on 2024-08-30 (with 1 earlier hole)')]);
  expect(await noticesOf(context, { from: '2024-08-30' })).toEqual([notice('end on 2024-08-30')]);

  await importInto(context, [
    list('CF-CA-3.csv', '01-Jul-2024', '31-Jul-2024', '20-Sep-2024', '20-Oct-2024', '19-Nov-2024'),
  ]);
  expect([await readFindings(), await noticesOf(context, {})]).toEqual([[], []]);
});

/** A trading day of NSE: symbol, previous close, open and close of each share. */
const prices = (day: string, ...shares: readonly (readonly [string, number, number, number])[]) =>
  newFile(`${day}.csv`, [
    HEADER,
    ...shares.map(
      ([symbol, previous, open, close], at) =>
        `${day},${day},CM,NSE,STK,${at + 1},INE${symbol.padStart(6, '0')}011,${symbol},EQ,${symbol} LTD,${open},${open},${close},${close},${close},${previous},10,1000,3,F1,1`,
    ),
  ]);

/** An undecided event of a share with its prices: the close before, then open and close of the ex-date. */
interface PricedEvent {
  readonly kind: string;
  readonly purpose: string;
  readonly series?: string;
  /** What a holder of 100 rupees of shares has less after it, by its terms; null: they do not tell. */
  readonly percent: (before: number) => number | null;
  readonly before: number;
  readonly open: number;
  readonly close: number;
  /** False if a trading day between the two is not stored. */
  readonly isNext: boolean;
}

const rupees = (maxRupees: number) => fc.integer({ min: 1, max: maxRupees });
const undecided = fc.oneof(
  fc.tuple(rupees(9), rupees(9), rupees(150)).map(([more, old, premium]) => ({
    kind: 'rights',
    purpose: `Rights ${more}:${old} @ Premium Rs ${premium}`,
    // The new shares are bought at the premium: shares and money together are divided by all shares.
    percent: (before: number) =>
      Math.max(0, 100 * (1 - (old * before + more * premium) / (old + more) / before)),
  })),
  rupees(50).map((amount) => ({
    kind: 'dividend',
    purpose: `Special Dividend - Rs ${amount} Per Share`,
    percent: (before: number) => (100 * amount) / before,
  })),
  rupees(9).map((more) => ({
    kind: 'bonus',
    purpose: `Bonus ${more}:1`,
    // Of another security: it may or may not be an event of the share.
    series: 'N1',
    percent: () => (100 * more) / (more + 1),
  })),
  fc
    .constantFrom(
      'Rights 1:1',
      'Rights',
      'Bonus',
      'Split',
      'Demerger',
      'Capital Reduction',
      'Special Dividend',
    )
    .map((purpose) => ({
      kind: (purpose === 'Capital Reduction' ? purpose : (purpose.split(' ').at(-1) as string))
        .toLowerCase()
        .replace(/1:1/, 'rights')
        .replace(' ', '_'),
      purpose,
      percent: () => null,
    })),
  fc.constant({ kind: 'other', purpose: 'Scheme Of Arrangement', percent: () => 0 }),
);
const pricedEvent: fc.Arbitrary<PricedEvent> = fc
  .record({
    event: undecided,
    before: fc.integer({ min: 20, max: 200 }),
    moves: fc.tuple(fc.integer({ min: -30, max: 30 }), fc.integer({ min: -3, max: 3 })),
    isNext: fc.integer({ max: 9 }).map((n) => n > 0),
  })
  .map(({ event, before, moves: [open, close], isNext }) => ({
    ...event,
    before,
    isNext,
    open: Math.max(1, before + Math.round((before * open) / 100)),
    close: Math.max(1, before + Math.round((before * close) / 100)),
  }));

test('the effect of an event is never less than its terms say, nor than the price moved, and none below a limit is unknown', async () => {
  const events = sample(pricedEvent, { numRuns: 150, seed: 1 });
  const symbolOf = (at: number) => `S${at}`;
  const context = await openStore();
  await importInto(context, [
    prices('2024-05-31', ...events.map(({ before }, at) => [symbolOf(at), 90, before, before] as const)),
    prices(
      '2024-06-03',
      ...events.map(
        ({ before, open, close, isNext }, at) =>
          [symbolOf(at), isNext ? before : before + 1, open, close] as const,
      ),
    ),
    newFile('CF-CA.csv', [
      CF_CA,
      ...events.map(
        ({ purpose, series = 'EQ' }, at) =>
          `${symbolOf(at)},Share,${series},${purpose},10,03-Jun-2024,04-Jun-2024,-,-`,
      ),
    ]),
  ]);
  const expected = events.map(({ kind, percent, before, open, close, isNext }, at) => {
    const moved = isNext ? Math.max(Math.abs(open / before - 1), Math.abs(close / before - 1)) * 100 : null;
    // A ratio needs no price.
    const terms = isNext || kind === 'bonus' ? percent(before) : null;
    return [symbolOf(at), kind, terms === null ? null : Math.max(terms, moved ?? 0)] as const;
  });
  const listed = await listEvents(context.db.pool, { statuses: ['needs_review'] }, 10_000);
  const effects = new Map(listed.events.map(({ symbol, kind, effect }) => [`${symbol} ${kind}`, effect]));
  expect(effects.size).toBe(events.length);
  for (const [symbol, kind, effect] of expected) {
    const stored = effects.get(`${symbol} ${kind}`);
    if (effect === null) expect(stored, `${symbol} ${kind}`).toBeNull();
    else expect(stored, `${symbol} ${kind}`).toBeCloseTo(effect, 1);
  }
  for (const limit of [2, 5, 20]) {
    const { small, large, unknown } = await smallEvents(context, limit);
    const under = listed.events.filter(({ effect }) => effect !== null && effect < limit);
    expect(small.flat().toSorted()).toEqual(under.map(({ id }) => id).toSorted());
    expect(unknown).toBe(expected.filter(([, , effect]) => effect === null).length);
    expect(small.length + large + unknown).toBe(events.length);
  }
  // Those that one command settles are one issue of the list, the others one each.
  const { small } = await smallEvents(context, SMALL_EFFECT);
  const { issues } = await readIssues(context.db.drizzle, { kinds: ['corporate_action'] }, 10_000);
  const isSmall = ({ effect }: { effect: number | null }) => effect !== null && effect < SMALL_EFFECT;
  expect(small.length).toBeGreaterThan(1);
  expect(issues.filter(isSmall)).toMatchObject([
    { items: small.length, id: null, subject: null, priority: 3, from: '2024-06-03', to: '2024-06-03' },
  ]);
  expect(issues.filter(isSmall).map((issue) => issueCommand(issue, context.config))).toEqual([
    'eod events ignore --below 5',
  ]);
  const { stdout } = await runCli(['issues', '--limit', '10000'], {
    cwd: temporaryFolder(),
    env: { DATABASE_URL: context.db.url },
  });
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    `${small.length} undecided corporate actions, each of which moves the price by less than 5 %: NSE 2024-06-03 for example: `,
  );
  expect(stdout).toContain('\n    eod events ignore --below 5\n');
  const number = events.length.toLocaleString('en');
  expect(stdout).toContain(`${number} issues: ${number} corporate actions\n`);
  const others = issues.filter((issue) => !isSmall(issue));
  expect(others).toHaveLength(events.length - small.length);
  expect(others.filter(({ items, id }) => items !== 1 || id === null)).toEqual([]);
  // The limit of a list counts lines.
  expect((await readIssues(context.db.drizzle, { kinds: ['corporate_action'] }, 3)).issues).toEqual(
    issues.slice(0, 3),
  );
});

test('what moved the price by less than a percentage is ignored at once; what is larger, not known or changes the shares stays, largest first', async () => {
  const context = await openStore();
  await importInto(context, [
    prices(
      '2024-05-31',
      ['SMALL', 90, 100, 100],
      ['LARGE', 90, 100, 100],
      ['FELL', 90, 100, 100],
      ['LATE', 90, 100, 100],
      ['PARTED', 90, 100, 100],
      ['DIVIDED', 90, 100, 100],
      ['BOUGHT', 90, 100, 100],
    ),
    // LATE has had a trading day in between that is not stored.
    prices(
      '2024-06-03',
      ['SMALL', 100, 97, 99],
      ['LARGE', 100, 70, 99],
      ['FELL', 100, 99, 80],
      ['LATE', 98, 99, 99],
      ['PARTED', 100, 99, 99],
      ['DIVIDED', 100, 99, 99],
      ['BOUGHT', 100, 100, 100],
    ),
    newFile('CF-CA.csv', [
      CF_CA,
      ...['SMALL', 'LARGE', 'FELL', 'LATE'].map(
        (symbol) => `${symbol},Share,EQ,Rights 1:99 @ Premium Rs 1,10,03-Jun-2024,04-Jun-2024,-,-`,
      ),
    ]),
    newFile('events.csv', [
      'exchange,symbol,ex_date,kind,ratio,note',
      'NSE,BOUGHT,2024-06-03,rights,,',
      'NSE,NOBODY,2024-06-03,demerger,,',
      'NSE,PARTED,2024-06-03,demerger,,',
      'NSE,DIVIDED,2024-06-03,split,,',
    ]),
  ]);
  const { pool } = context.db;
  const effects = async () =>
    (await listEvents(pool, { statuses: ['needs_review'] }, 9)).events.map(({ symbol, effect }) => [
      symbol,
      effect,
    ]);
  expect(await effects()).toEqual([
    ['DIVIDED', null],
    ['NOBODY', null],
    ['PARTED', null],
    ['LARGE', 30],
    ['FELL', 20],
    ['SMALL', 3],
    ['BOUGHT', null],
    ['LATE', null],
  ]);
  const printed = async () =>
    (
      await runCli(['issues', '--kind', 'corporate_action'], {
        cwd: temporaryFolder(),
        env: { DATABASE_URL: context.db.url },
      })
    ).stdout;
  expect(await printed()).toContain(
    [
      'undecided: LARGE, rights, ex-date 2024-06-03 (NSE); at most 30 % of the price',
      '    Rights 1:99 @ Premium Rs 1',
    ].join('\n'),
  );
  expect(await printed()).toContain('undecided: BOUGHT, rights, ex-date 2024-06-03 (NSE)\n');
  const bySize = await smallEvents(context, 5);
  expect(bySize).toEqual({ small: [['NSE:SMALL:2024-06-03:rights']], large: 2, unknown: 5 });
  await ignoreEvents(context, bySize.small.flat());
  expect((await effects()).map(([symbol]) => symbol)).toEqual([
    'DIVIDED',
    'NOBODY',
    'PARTED',
    'LARGE',
    'FELL',
    'BOUGHT',
    'LATE',
  ]);
  expect((await smallEvents(context, 5)).small).toEqual([]);
  const { issues } = await readIssues(context.db.drizzle, { kinds: ['corporate_action'] }, 9);
  expect(issues.map(({ subject, priority, effect }) => [subject, priority, effect])).toEqual([
    ['LARGE rights', 1, 30],
    ['FELL rights', 1, 20],
    ['DIVIDED split', 1, null],
    ['NOBODY demerger', 1, null],
    ['PARTED demerger', 1, null],
    ['BOUGHT rights', 2, null],
    ['LATE rights', 2, null],
  ]);
  expect(issues.find(({ subject }) => subject === 'DIVIDED split')?.text).toContain('its price moved by 1 %');
  const texts = issues.map(({ subject, effect }) =>
    effect === null ? null : priceEffectText(subject?.split(' ').at(-1) as string, effect),
  );
  expect(texts.slice(0, 2)).toEqual(['at most 30 % of the price', 'at most 20 % of the price']);
  expect(priceEffectText('other', 3)).toBe('the price moved by 3 %');
});
