import type { Kind } from '../../operations/fields.ts';
import { parseDecimal } from '../decimals.ts';
import type { GuessedColumn } from './guess-columns.ts';

export interface GuessedKey {
  /** The columns that tell the records apart, without the exchange. */
  readonly columns: readonly GuessedColumn[];
  /** Are equal records counted, because no columns tell all of them apart? */
  readonly isCounted: boolean;
  readonly day: GuessedColumn | null;
  readonly instrument: GuessedColumn | null;
}

/** The longest text of a key. */
const LONGEST = 200;

/** How many columns are tried together beside the day and the instrument, and of how many. */
const MOST_TOGETHER = 3;
const MOST_TRIED = 20;

/** So many records rule out nearly all columns that do not tell records apart. */
const MOST_AT_FIRST = 500;

/** How many columns the key of a set has whose records are counted: Postgres allows 32. */
const MOST_COUNTED = 12;

const hasAll = ({ values }: GuessedColumn) => values.every((value) => value !== null);

/** The value that a key column has where the source sends none; undefined if its kind has none. */
export function absentOf(kind: Kind): '' | 0 | undefined {
  if (kind === 'text') return '';
  return ['int2', 'int4', 'int8', 'numeric'].includes(kind) ? 0 : undefined;
}

function mayBeKey(column: GuessedColumn): boolean {
  const { kind, values } = column;
  if (values.some((value) => typeof value === 'string' && value.length > LONGEST)) return false;
  return hasAll(column) || (absentOf(kind) !== undefined && values.some((value) => value !== null));
}

const INSTRUMENTS = [/^symbol$/, /^scrip_code$/, /^scrip_id$/, /^isin$/, /(^|_)(symbol|scrip_code|isin)$/];
const INSTRUMENT_LIKE = /^instrument(_identifier)?$|^(trade_)?symbol|^security(_name)?$|^company_code$/;

function instrumentOf(columns: readonly GuessedColumn[]): GuessedColumn | null {
  const fitting = columns.filter(({ kind }) => kind !== 'numeric' && kind !== 'boolean' && kind !== 'date');
  for (const pattern of [...INSTRUMENTS, INSTRUMENT_LIKE]) {
    const found = fitting.find(({ column }) => pattern.test(column));
    if (found !== undefined) return found;
  }
  return null;
}

/** The first column of days that every record has; better one whose name begins so, as an end or change is a detail. */
function dayOf(columns: readonly GuessedColumn[]): GuessedColumn | null {
  const days = columns.filter((one) => one.kind === 'date' && hasAll(one));
  const isDetail = ({ column }: GuessedColumn) =>
    /^(from|to|end|start|valid|expiry|maturity|created|updated|record|ex)(_|$)|_(from|to|expiry)$/.test(
      column,
    );
  return days.find((one) => !isDetail(one)) ?? days[0] ?? null;
}

/** How likely a column tells records apart, by its kind and the rules of its name; figures are the last that do. */
function rank({ kind, column }: GuessedColumn): number {
  if (/(^|_)(price|quantity|turnover|value|percent|amount|crore|lakh|count|total)(_|$)/.test(column))
    return 9;
  if (/(^|_)(key|code|id|type|name|series|label|category|group|no|number)(_|$)/.test(column)) return 1;
  return { text: 2, date: 3, boolean: 4, int2: 5, int4: 5, int8: 6, datetime: 7, numeric: 8 }[kind];
}

/** The value as Postgres compares it. */
function compared(value: GuessedColumn['values'][number], kind: Kind): unknown {
  if (value === null) return absentOf(kind) ?? null;
  return kind === 'numeric' || kind.startsWith('int') ? parseDecimal(String(value)) : value;
}

/** Counts the groups into which columns divide the records. */
function createDividing(columns: readonly GuessedColumn[]) {
  const texts = new Map(
    columns.map((one) => [one, one.values.map((value) => JSON.stringify(compared(value, one.kind)))]),
  );
  return (chosen: readonly GuessedColumn[], records: number): number => {
    const lists = chosen.map((one) => texts.get(one) ?? []);
    const groups = new Set<string>();
    for (let at = 0; at < records; at++) groups.add(lists.map((list) => list[at]).join('\t'));
    return groups.size;
  };
}

/** All sets of so many of these items, the first items first. */
function* setsOf<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (const [at, item] of items.entries()) {
    for (const rest of setsOf(items.slice(at + 1), size - 1)) yield [item, ...rest];
  }
}

/** What is always in the key of facts, which have neither an instrument nor a day. */
const OF_FACTS = ['key', 'fact_key', 'label', 'context_name', 'unit_id'];

/**
 * Guesses the key: the day and the instrument, as records of others will come, and the fewest further columns that tell
 * the records apart; if none do, equal ones are counted.
 *
 * @param records how many there are.
 * @param areFacts whether day and instrument are in the request only.
 */
export function guessKey(columns: readonly GuessedColumn[], records: number, areFacts: boolean): GuessedKey {
  const keyable = columns.filter(mayBeKey);
  const day = areFacts ? null : dayOf(keyable);
  const instrument = areFacts ? null : instrumentOf(keyable);
  const always = areFacts
    ? keyable.filter(({ column }) => OF_FACTS.includes(column))
    : [day, instrument].filter((one) => one !== null);
  // A fact whose value is corrected is the same fact: equal ones are counted.
  const others = areFacts
    ? []
    : keyable.filter((one) => !always.includes(one)).sort((a, b) => rank(a) - rank(b));
  const groups = createDividing(keyable);
  const found = { day, instrument };
  const tried = others.slice(0, MOST_TRIED);
  for (let size = always.length === 0 ? 1 : 0; size <= MOST_TOGETHER; size++) {
    for (const further of setsOf(tried, size)) {
      const chosen = [...always, ...further];
      const [few, all] = [Math.min(records, MOST_AT_FIRST), records];
      if (groups(chosen, few) === few && groups(chosen, all) === all)
        return { ...found, columns: chosen, isCounted: false };
    }
  }
  return { ...found, columns: [...always, ...others].slice(0, MOST_COUNTED), isCounted: true };
}
