import type { Config } from '../../core/config.ts';
import { groupBy } from '../../core/iterables.ts';
import { plainName } from '../../operations/fields.ts';
import { OPEN_POINTS } from '../../sandbox/index.ts';
import { type Made, type MadeCall, problemText, type SentRecord } from './make-calls.ts';
import { SEEN } from './open-points.ts';
import { dayIn, fieldsOf } from './sent-values.ts';
import type { Responses, SettingChange } from './verdict.ts';

/** What the probe says of an open point. */
export type PointReport = ReturnType<typeof judge>[number];

export function responsesOf(calls: readonly MadeCall[], config: Config): Responses {
  // The last, because one that the key may not make is made again in another way.
  const of = (name: string) => calls.findLast(({ call }) => call.name === name);
  const records = (name: string) => of(name)?.records ?? [];
  const requestedBefore = of('prices before')?.call.requested.to;
  const zone = config.EOD_TIMEZONE;
  const trialDay = trialDayOf(records('prices'), records('prices before'), requestedBefore, zone);
  return { config, all: calls, trialDay, of, records };
}

/** The one day that is sent whatever is requested, of the two days of prices; null if there is none. */
function trialDayOf(
  prices: readonly SentRecord[],
  before: readonly SentRecord[],
  requestedBefore: string | undefined,
  zone: string,
): string | null {
  const days = [...new Set([...prices, ...before].map((record) => dayIn(record, zone, 'tradDt')))];
  const [day = null] = days;
  const isOne = days.length === 1 && prices.length > 0 && before.length > 0;
  return isOne && day !== requestedBefore ? day : null;
}

/** The verdict on every open point, in the order of the table in ARCHITECTURE.md. */
export const judge = (responses: Responses) =>
  OPEN_POINTS.map(({ name, open, handled }) => {
    const { setting = null, ...verdict } = SEEN[name](responses);
    return { name, point: open, handled, ...verdict, setting };
  });

/** The settings that fit what was seen, each once. */
export function settingsOf(points: readonly PointReport[]): SettingChange[] {
  const all = points.flatMap(({ setting }) => (setting === null ? [] : [setting]));
  return all.filter(({ name }, at) => all.findIndex((one) => one.name === name) === at);
}

/** One line for each call. */
export const callRow = ({ call, response, problem, records, extracted, seconds }: MadeCall) => ({
  purpose: call.purpose,
  operation: call.operation.name,
  exchange: call.requested.exchange,
  from: call.requested.from,
  to: call.requested.to,
  format: call.variation.format ?? null,
  status: response?.status ?? null,
  contentType: response?.contentType ?? null,
  bytes: response?.body.length ?? null,
  records: problem === null ? records.length : null,
  rejects: extracted?.rejects.length ?? null,
  seconds,
  problem: problem === null ? null : problemText(problem),
});

/** What the key may request, as far as calls have shown it. */
export function rightsOf(calls: readonly MadeCall[]) {
  const pairs = groupBy(calls, ({ call }) => `${call.operation.name} ${call.requested.exchange}`);
  return [...pairs.values()].map((of) => {
    const [first] = of as [MadeCall];
    const isServed = of.some(({ problem }) => problem === null);
    return {
      operation: first.call.operation.name,
      exchange: first.call.requested.exchange,
      isServed,
      problem: isServed || first.problem === null ? null : problemText(first.problem),
    };
  });
}

/** Instruments that the key may not request by name, as far as calls have shown it. */
export const refusedInstruments = (calls: readonly MadeCall[]): string[] => [
  ...new Set(
    calls
      .filter(({ problem }) => problem?.kind === 'instrument_blocked')
      .flatMap(({ call }) => call.requested.instruments),
  ),
];

/** Values that differ between formats of the same request, after reading. */
export function formatsOf({ of }: Responses) {
  const pairs = [
    ['prices', 'prices in CSV'],
    ['prices', 'prices in XML'],
    ['prices', 'prices in Epoch'],
    ['ratios', 'ratios in CSV'],
  ] as const;
  return pairs.flatMap(([name, other]) => {
    const [one, two] = [rowsOf(of(name)), rowsOf(of(other))];
    if (one.length === 0 || two.length === 0) return [];
    const columns = Object.keys(one[0] ?? {});
    const differences = one.flatMap((row, at) =>
      columns.flatMap((column) => {
        const [left, right] = [row[column] ?? null, two[at]?.[column] ?? null];
        return String(left) === String(right) ? [] : [`${column}: ${left} and ${right}`];
      }),
    );
    return [{ compared: `${name} and ${other}`, values: one.length * columns.length, differences }];
  });
}

const rowsOf = (made: MadeCall | undefined) => [...(made?.extracted?.batches[0]?.rows ?? [])];

/** Whether a range includes its first and its last day; null if that was not seen. */
export function datesOf({ of, records, trialDay, config }: Responses) {
  const made = of('prices of two days');
  if (made === undefined || made.problem !== null || trialDay !== null) return { isInclusive: null };
  if (records('prices').length === 0 || records('prices before').length === 0) return { isInclusive: null };
  const days = new Set(made.records.map((record) => dayIn(record, config.EOD_TIMEZONE, 'tradDt')));
  const { from, to } = made.call.requested;
  return { isInclusive: days.has(from) && days.has(to) };
}

/** Fields that the declaration does not have, and declared ones that no record has. */
export function fieldsFound(calls: readonly MadeCall[]) {
  const seen = new Set<string>();
  return calls.flatMap(({ call, extracted, records }) => {
    const { operation, variation } = call;
    const table = extracted?.batches[0]?.table;
    if (table === undefined || variation.format !== 'Json' || seen.has(operation.name)) return [];
    seen.add(operation.name);
    const shape = operation.shapes.find((one) => one.table === table) ?? operation.shapes[0];
    const sent = new Set(records.flatMap((record) => Object.keys(record)).map(plainName));
    const missing = fieldsOf({ ...operation, shapes: [shape] })
      .filter(({ source, orElse = [] }) => [source, ...orElse].every((name) => !sent.has(plainName(name))))
      .map(({ source }) => source);
    return [{ operation: operation.name, table: table.name, added: extracted?.unknownFields ?? [], missing }];
  });
}

/** Headers about limits of use. */
export function limitHeaders({ calls }: Made): Record<string, string> {
  const all = calls.flatMap(({ response }) => Object.entries(response?.headers ?? {}));
  const found = all.filter(([name]) => /limit|remaining|quota|retry-after/i.test(name));
  return Object.fromEntries(found);
}
