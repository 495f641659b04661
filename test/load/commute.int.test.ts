import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { planReplay } from '../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../src/jobs/replay/work-replay.ts';
import { readToFold } from '../../src/jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../src/load/market/accept-withdrawal.ts';
import { hashBody } from '../../src/load/state/responses/responses.ts';
import { operationNamed, tables } from '../../src/operations/registry.ts';
import { openStore } from '../jobs/import-support.ts';
import { physical, replay, replayAnew, rowsOf, type SourceRecord } from '../jobs/replay-support.ts';
import { forAllAsync } from '../support/for-all.ts';
import { positionOf } from '../support/position.ts';
import { openWindow, responseWindow } from './as-worker.ts';
import { contentOf, DAYS, SYMBOLS, truncateSql } from './commute-support.ts';
import { differingCoverage } from './differing-coverage.ts';
import { newRun, openPool } from './support.ts';

/** Of which times a record says that it was saved; 0: of none; the last is not believed. */
const SAVED = [
  '',
  '08-21-2025 21:02:14',
  '08-21-2025 21:15:00',
  '08-21-2025 22:30:00',
  '01-01-2199 00:00:00',
] as const;
const NOT_BELIEVED = SAVED.length - 1;
/** When the first response was fetched. */
const FIRST_CALL = Date.UTC(2025, 9, 22, 6);

/** The kinds of responses, by what a full one lists in full. */
const KINDS = {
  session: { operation: 'GetBhavCopyCM', lists: 'days', mayBeEmpty: false },
  range: { operation: 'GetSeriesChange', lists: 'days', mayBeEmpty: true },
  exchange: { operation: 'GetCorporateActionsCategories', lists: 'exchange', mayBeEmpty: false },
  instrument: { operation: 'GetFinRatioEOD', lists: 'none', mayBeEmpty: true },
  company: { operation: 'GetSectoralClassification', lists: 'none', mayBeEmpty: true },
} as const;
type Kind = keyof typeof KINDS;
const EXCHANGES = ['NSE', 'BSE'] as const;
type Exchange = (typeof EXCHANGES)[number];

interface Listed {
  readonly day: number;
  readonly symbol: number;
  readonly saved: number;
  readonly value: number;
}

/** One response of the source. `fetched` is its position in the order of the calls. */
interface Response {
  readonly fetched: number;
  /** Fetched in the very millisecond of the one before. */
  readonly atOnce: boolean;
  readonly kind: Kind;
  readonly exchange: Exchange;
  readonly from: number;
  readonly to: number;
  readonly part: 'full' | 'filtered' | 'instruments' | 'rejects';
  /** In the order of the response: a key may come twice. */
  readonly records: readonly Listed[];
}

const responseOf = fc.record({
  /** Fetched in the very millisecond of the one before; `again`: and requested the same. */
  atOnce: fc.constantFrom<false | 'other' | 'again'>(false, false, false, false, 'other', 'again'),
  exchange: fc.constantFrom<Exchange>('NSE', 'NSE', 'NSE', 'BSE'),
  kind: fc.constantFrom<Kind>('session', 'session', 'session', 'range', 'exchange', 'instrument', 'company'),
  from: fc.nat(DAYS.length - 1),
  length: fc.constantFrom(0, 0, 0, 1, 2),
  part: fc.constantFrom<Response['part']>(
    'full',
    'full',
    'full',
    'full',
    'filtered',
    'instruments',
    'rejects',
  ),
  ...contentOf(SAVED.length),
});
/** With the entries of those that ask what the one before did. */
const drawnOf = fc.array(responseOf, { minLength: 4, maxLength: 12 }).map((drawn) => {
  const requested: typeof drawn = [];
  for (const one of drawn) {
    const last = requested.at(-1);
    if (one.atOnce !== 'again' || last === undefined) requested.push(one);
    else {
      const { kind, exchange, from, length, part } = last;
      requested.push({ ...one, kind, exchange, from, length, part });
    }
  }
  return requested;
});
const responsesOf = drawnOf.map((drawn) =>
  drawn.map(({ atOnce, length, missing, cells, twice, ...response }, fetched): Response => {
    const { kind, from } = response;
    const { lists } = KINDS[kind];
    const to = kind === 'instrument' ? from : Math.min(DAYS.length - 1, from + length);
    const part =
      lists === 'none'
        ? 'instruments'
        : kind === 'exchange' && response.part === 'instruments'
          ? 'filtered'
          : response.part;
    const records: Listed[] = [];
    for (let day = from; day <= (lists === 'days' ? to : from); day += 1) {
      for (let symbol = 0; symbol < SYMBOLS; symbol += 1) {
        const few = part === 'instruments' && symbol % 5 !== from;
        if (missing.includes((symbol + day * 3) % SYMBOLS) || few) continue;
        const cell = cells[(symbol + day * 5) % SYMBOLS] ?? { saved: 0, value: 0 };
        records.push({ ...cell, day: lists === 'days' || kind === 'instrument' ? day : 0, symbol });
      }
    }
    const one =
      kind === 'instrument'
        ? records.slice(0, 1).map((record) => ({ ...record, symbol: fetched % 3 }))
        : records;
    const again = one.slice(0, twice).map((record) => ({
      ...record,
      value: (record.value + 1) % 3,
      saved: (record.saved + fetched) % SAVED.length,
    }));
    return { ...response, atOnce: atOnce !== false, part, fetched, to, records: [...one, ...again] };
  }),
);

/** In which order they are loaded, how many at a time, and what goes wrong on the way. */
const scheduleOf = fc.record({
  order: fc.array(fc.nat(1_000), { minLength: 12, maxLength: 12 }),
  width: fc.integer({ min: 1, max: 3 }),
  aborted: fc.array(fc.constantFrom(true, false, false), { minLength: 12, maxLength: 12 }),
  repeated: fc.array(fc.constantFrom(true, false, false), { minLength: 12, maxLength: 12 }),
});

function fetchedAt(responses: readonly Response[], { fetched }: Response): number {
  const minutes = responses.slice(0, fetched + 1).filter(({ atOnce }) => !atOnce).length;
  return FIRST_CALL + minutes * 60_000;
}

/** Of a category, the label belongs to the key. */
const keyOf = (kind: Kind, { day, symbol, value }: Listed) =>
  kind === 'exchange' ? `${day} ${symbol} ${value}` : `${day} ${symbol}`;
/** All rows of an exchange's full set are of one day. */
const dayOf = (kind: Kind, day: number) => (KINDS[kind].lists === 'days' ? day : 0);

/**
 * Entries that were covered in one millisecond count in the order of their operations, days and instruments, and
 * responses to one requests in that of the hashes of their bodies.
 */
function inOrder(responses: readonly Response[]): Response[] {
  const position = (one: Response) => [
    fetchedAt(responses, one),
    one.from,
    one.to,
    entryOf(one).instruments.join(),
    `${one.part === 'filtered'}`,
    hashBody(bodyOf(one)),
  ];
  const compare = (a: Response, b: Response) => {
    const [left, right] = [position(a), position(b)];
    const at = left.findIndex((value, index) => value !== right[index]);
    return at < 0 ? a.fetched - b.fetched : (left[at] as string) < (right[at] as string) ? -1 : 1;
  };
  return [...responses].sort(compare);
}

/** A moment as the source would write it. */
function indianTime(moment: number): string {
  const [date = '', time] = new Date(moment + 5.5 * 3_600_000).toISOString().slice(0, 19).split('T');
  const [year, month, day] = date.split('-');
  return `${month}-${day}-${year} ${time}`;
}

interface ModelRow {
  value: number;
  /** As a position in SAVED, or the moment of a call. */
  saved: number;
  live: boolean;
}

/**
 * The records of a response that count. Of two with one key it is the one that was saved later. If neither was, and they
 * differ, then it is the one that is not zero, and where both have a value, neither.
 */
function settle(kind: Kind, records: readonly Listed[]) {
  const best = new Map<string, Listed>();
  const contradicted = new Set<string>();
  for (const record of records) {
    const key = keyOf(kind, record);
    const other = best.get(key);
    if (other === undefined || record.saved > other.saved) best.set(key, record);
    else if (record.saved === other.saved && record.value !== other.value) {
      // The value of the other kinds is a name, so it is never zero.
      const isZero = kind === 'instrument' && record.value * other.value === 0;
      if (!isZero) contradicted.add(key);
      else if (other.value === 0) best.set(key, record);
    }
  }
  for (const key of contradicted) best.delete(key);
  return { best, contradicted };
}

/**
 * What any order of loading has to end in, computed from the responses alone: each changes the rows in the order
 * in which they were fetched.
 */
function fold(
  all: readonly Response[],
  accepted: ReadonlySet<string>,
): { rows: string[]; refused: string[] } {
  const rows: string[] = [];
  const refused = new Set<string>();
  for (const { exchange, kind } of tablesOfExchanges()) {
    const known = new Map<string, ModelRow>();
    const most = new Map<number, number>();
    const { lists, mayBeEmpty } = KINDS[kind];
    const live = (day: number) =>
      [...known]
        .filter(([key, row]) => row.live && dayOf(kind, Number(key.split(' ')[0])) === day)
        .map(([key]) => key);
    for (const response of inOrder(all).filter((one) => one.kind === kind && one.exchange === exchange)) {
      // Half of its records and more were refused, so none was stored.
      if (response.part === 'rejects' && response.records.length === 0) continue;
      const days = Array.from({ length: response.to - response.from + 1 }, (_, at) => response.from + at);
      const requested = lists === 'days' ? days : [0];
      const before = new Map(requested.map((day) => [day, live(day).length]));
      const { best, contradicted } = settle(kind, response.records);
      for (const [key, { value, saved: said }] of best) {
        const row = known.get(key);
        // A time that is not believed is that of the call where the row is new, and else none.
        const isNew = said === NOT_BELIEVED && row === undefined;
        const saved = isNew ? fetchedAt(all, response) : said % NOT_BELIEVED;
        if (row === undefined) known.set(key, { value, saved, live: true });
        else if (saved > 0 && row.saved > saved) row.live = true;
        else Object.assign(row, { value, saved: Math.max(saved, row.saved), live: true });
      }
      // On the day of the call it may be too early for anything: nothing is no full set then.
      const tooEarly = kind === 'exchange' && response.records.length === 0;
      const isRejected = contradicted.size > 0;
      if (response.part !== 'full' || lists === 'none' || tooEarly || isRejected) continue;
      for (const day of requested) {
        const name = `${exchange} ${kind} ${lists === 'days' ? DAYS[day] : ''}`;
        refused.delete(name);
        const gone = live(day).filter((key) => !best.has(key));
        if (gone.length === 0) continue;
        const was = before.get(day) ?? 0;
        const top = Math.max(was, most.get(day) ?? 0);
        const emptied = !mayBeEmpty && gone.length === live(day).length;
        const believed = !emptied && top - (was - gone.length) <= Math.max(5, Math.floor(top * 0.1));
        const isAccepted = accepted.has(`${fetchedAt(all, response)} ${name}`);
        if (!believed && !isAccepted) {
          refused.add(name);
          continue;
        }
        for (const key of gone) (known.get(key) as ModelRow).live = false;
        most.set(day, isAccepted ? live(day).length : top);
      }
    }
    for (const [key, { value, saved, live: isLive }] of known) {
      if (!isLive) continue;
      const [day, symbol] = key.split(' ').map(Number) as [number, number];
      const shown = kind === 'session' || kind === 'range' || kind === 'instrument' ? DAYS[day] : '';
      rows.push(
        [exchange, kind, shown, `S${symbol}`, `V${value}`, SAVED[saved] ?? indianTime(saved)].join(' '),
      );
    }
  }
  return { rows: rows.sort(), refused: [...refused].sort() };
}

const tablesOfExchanges = () =>
  EXCHANGES.flatMap((exchange) => (Object.keys(KINDS) as Kind[]).map((kind) => ({ exchange, kind })));

function bodyOf({ exchange, kind, part, records }: Response): Buffer {
  const value = records.map((record) => sent(exchange, kind, record));
  return Buffer.from(JSON.stringify({ Value: part === 'rejects' ? [...value, { Unknown: 1 }] : value }));
}

function entryOf({ exchange, kind, from, to, part, fetched }: Response) {
  const [first, last] = [DAYS[from], DAYS[to]] as [string, string];
  const some = kind === 'instrument' ? [`S${fetched % 3}`] : [`S${from}`, `S${from + 5}`, `S${from + 10}`];
  return {
    exchange,
    from: first,
    to: last,
    instruments: part === 'instruments' ? some : [],
    params: kind === 'instrument' ? { variant: 'eod', natureOfReport: 'Standalone' } : {},
  };
}

/** A record as the source sends it. */
function sent(exchange: Exchange, kind: Kind, { day, symbol, saved, value }: Listed): SourceRecord {
  const [year, month, date] = (DAYS[day] as string).split('-');
  const onDay = `${month}-${date}-${year}`;
  const name = `S${symbol}`;
  const times = saved === 0 ? {} : { SavedAt: SAVED[saved] };
  const text = `V${value}`;
  switch (kind) {
    case 'session':
      return {
        TradDt: onDay,
        Src: exchange,
        Symbol: name,
        SctySrs: 'EQ',
        FinInstrmNm: text,
        ClosePrice: value,
        ...times,
      };
    case 'range':
      return {
        ChangeDate: onDay,
        ScripId: name,
        ScripName: text,
        PrevSeries: 'EQ',
        ToSeries: 'BE',
        ...times,
      };
    case 'exchange':
      return { CorporateActiontype: text, PurposeCode: name, ...times };
    case 'instrument':
      return {
        ...(operationNamed('GetFinRatioEOD').sample.response as SourceRecord),
        EPS: value,
        ...times,
      };
    case 'company':
      return {
        Symbol: name,
        ISIN: name,
        ScripCode: symbol,
        AllotedFrom: '03-31-2022',
        CompanyName: text,
        ...times,
      };
  }
}

let context: Context;
let pools: Context[];
let runId: number;
let loads = 0;
beforeAll(async () => {
  context = await openStore(undefined, { EOD_MAX_REJECT_SHARE: '0.9' });
  // As every command does when it starts; else the first run that ends would.
  pools = [0, 1, 2].map(() => ({ ...context, db: openPool(context.config.DATABASE_URL ?? '', 2) }));
  runId = await newRun(context.db);
  await context.db.pool.query(`
    create table aborted (window_id bigint);
    create function abort_load() returns trigger language plpgsql as $$ begin
      if exists (select from aborted a where a.window_id = new.window_id) then raise 'aborted'; end if;
      return new;
    end $$;
    create trigger abort_load before insert on etl.loads for each row execute function abort_load()`);
});

async function load(at: Context, responses: readonly Response[], response: Response, { abort = false } = {}) {
  loads += 1;
  const { kind, part } = response;
  const calledAt = fetchedAt(responses, response);
  const given = {
    ...entryOf(response),
    operation: operationNamed(KINDS[kind].operation),
    variant: kind === 'instrument' ? 'eod/Standalone' : '',
    filtered: part === 'filtered',
    body: bodyOf(response),
    calledAt,
    position: positionOf(calledAt, inOrder(responses).indexOf(response)),
  };
  const id = await openWindow(at, runId, given);
  const store = () => responseWindow(at, runId, id, given);
  if (abort) {
    await at.db.pool.query('insert into aborted values ($1)', [id]);
    await store().catch((error) => expect(String(error)).toContain('aborted'));
    await at.db.pool.query('delete from aborted where window_id = $1', [id]);
  }
  await store();
}

const SAVED_TEXT = `coalesce(to_char(source_saved_at at time zone 'Asia/Kolkata', 'MM-DD-YYYY HH24:MI:SS'), '')`;
async function stored(): Promise<string[]> {
  const found = await context.db.pool.query<{ row: string }>(
    `select concat_ws(' ', exchange, 'session', trade_date, symbol, instrument_full_name, ${SAVED_TEXT}) as row from market.bhavcopy_cm
     union all select concat_ws(' ', exchange, 'range', change_date, scrip_id, scrip_name, ${SAVED_TEXT}) from market.series_changes
     union all select concat_ws(' ', exchange, 'exchange ', purpose_code, corporate_action_type, ${SAVED_TEXT}) from market.corporate_action_categories
     union all select concat_ws(' ', exchange, 'instrument', as_of_date, symbol, 'V' || eps, ${SAVED_TEXT}) from market.financial_ratios
     union all select concat_ws(' ', exchange, 'company ', symbol, company_name, ${SAVED_TEXT}) from market.sectoral_classification`,
  );
  return found.rows.map(({ row }) => row).sort();
}

async function refusals(): Promise<{ id: number; fetchedAt: number; name: string }[]> {
  const found = await context.db.pool.query<{
    id: number;
    at: Date;
    exchange: string;
    operation: string;
    day: string | null;
  }>(
    `select id::int, position as at, exchange, operation, day::text from etl.withdrawals where state = 'withheld' order by id`,
  );
  return found.rows.map(({ id, at, exchange, operation, day }) => {
    const kind = (Object.keys(KINDS) as Kind[]).find((one) => KINDS[one].operation === operation);
    return { id, fetchedAt: at.getTime(), name: `${exchange} ${kind} ${day ?? ''}` };
  });
}

const USED = tables.map(({ name }) => name);

async function empty(): Promise<void> {
  await context.db.pool.query(truncateSql(USED));
}

describe('loads in any order', () => {
  test('end in the same rows as in the order in which they were fetched', async () => {
    await forAllAsync(
      [responsesOf, scheduleOf],
      { numRuns: 2, seed: 20_250_829, endOnFailure: true },
      async (responses, { order, width, aborted, repeated }) => {
        await empty();
        const queue = [...responses].sort((a, b) => (order[a.fetched] ?? 0) - (order[b.fetched] ?? 0));
        while (queue.length > 0) {
          await Promise.all(
            queue.splice(0, width).map(async (response, at) => {
              const database = pools[at] ?? context;
              await load(database, responses, response, { abort: aborted[response.fetched] ?? false });
              if (repeated[response.fetched]) await load(database, responses, response);
            }),
          );
        }
        const model = fold(responses, new Set());
        expect(await stored()).toEqual(model.rows);
        expect((await refusals()).map(({ name }) => name).sort()).toEqual(model.refused);
        expect(await differingCoverage(context.db.drizzle)).toEqual([]);

        // A person accepts what was refused, one after the other.
        const accepted = new Set<string>();
        for (let [one] = await refusals(); one !== undefined; [one] = await refusals()) {
          await acceptWithdrawal(context.db, one.id, {
            by: 'me',
            readAgain: (response) => readToFold(context, response),
            maxWithdrawShare: context.config.EOD_MAX_WITHDRAW_SHARE,
          });
          accepted.add(`${one.fetchedAt} ${one.name}`);
          const now = fold(responses, accepted);
          expect(await stored()).toEqual(now.rows);
          expect((await refusals()).map(({ name }) => name).sort()).toEqual(now.refused);
          expect(await differingCoverage(context.db.drizzle)).toEqual([]);
        }

        // Loaded anew, the history comes out as well, whatever is loaded meanwhile.
        const [last] = inOrder(responses).slice(-1);
        if (responses.length % 4 === 0 && last !== undefined) {
          const contents = async () => [
            await rowsOf(context, 'market'),
            await rowsOf(context, 'market_history'),
          ];
          await replayAnew(context);
          const alone = await contents();
          const replaying = (await planReplay(context, {})) ?? 0;
          await load(context, responses, last);
          await workReplay(context, replaying, new AbortController().signal);
          expect(await contents()).toEqual(alone);
          expect(await stored()).toEqual(fold(responses, accepted).rows);
        }

        // Replayed in place, which takes as long as the rest, and with the rejects read once more, nothing at all is
        // written.
        if (responses.length % 2 === 0) return;
        const before = await physical(context);
        await replay(context, {});
        await replay(context, {}, { rejectsOnly: true }).catch((error: Error) => {
          expect(error.message).toBe('there is nothing to replay');
        });
        expect(await physical(context)).toEqual(before);
        expect(await stored()).toEqual(fold(responses, accepted).rows);
        expect(await differingCoverage(context.db.drizzle)).toEqual([]);
      },
    );
    console.log(`${loads} loads`);
  }, 3_600_000);
});
