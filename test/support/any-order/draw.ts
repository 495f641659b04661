import fc from 'fast-check';
import {
  bodyOf,
  CALLS,
  DAYS,
  KINDS,
  type Kind,
  kindOf,
  type Response,
  SAVED,
  type Sent,
  SYMBOLS,
} from './responses.ts';

// Sets of responses, and what happens to a database with them, drawn at random.

/** What happens to a database, one after the other. */
export type Step =
  /** `together`: at the same time as the load before. `again`: a second time after that. `killed`: and tried once more. */
  | {
      readonly act: 'load';
      readonly response: Response;
      readonly together: boolean;
      readonly again: boolean;
      readonly killed: boolean;
    }
  /** A person accepts a withdrawal that was withheld, if there is one. */
  | { readonly act: 'accept'; readonly which: number }
  /** `empty`: of rows and history, before a replay. */
  | { readonly act: 'replay' | 'empty' };

const several = <Value>(value: fc.Arbitrary<Value>) =>
  fc.array(value, { minLength: SYMBOLS, maxLength: SYMBOLS });

const drawnResponse = fc.record({
  kind: fc.nat(1),
  call: fc.nat(CALLS.length - 1),
  minute: fc.nat(3),
  from: fc.nat(DAYS.length - 1),
  length: fc.constantFrom(0, 0, 1, 2),
  part: fc.constantFrom<Response['part']>('full', 'full', 'full', 'full', 'filtered', 'instruments'),
  nature: fc.constantFrom<Response['nature']>('Standalone', 'Standalone', 'Consolidated'),
  content: fc.constantFrom(
    'many',
    'many',
    'many',
    'some',
    'some',
    'none',
    'none',
    'rejected',
    'partly',
    'partly',
  ),
  /** Which table the records of each day belong to; both, where the kind has two. */
  tables: fc.constantFrom<readonly number[]>([0], [0], [1], [0, 1], [1, 0]),
  missing: fc.uniqueArray(fc.nat(SYMBOLS - 1), { maxLength: 2 }),
  few: fc.uniqueArray(fc.nat(SYMBOLS - 1), { maxLength: SYMBOLS }),
  /** Days of which it has no records. */
  without: fc.constantFrom<readonly number[]>([], [], [], [0], [1], [2]),
  cells: several(fc.record({ value: fc.nat(1), saved: fc.constantFrom(0, 0, 0, 1, 2, 3) })),
  twice: fc.constantFrom(0, 0, 0, 0, 1, 2),
  bad: fc.array(
    fc.record({
      type: fc.constantFrom<'unknown' | 'broken' | 'stray'>('unknown', 'broken', 'broken', 'stray', 'stray'),
      symbol: fc.nat(2),
      day: fc.nat(DAYS.length - 1),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});
type Drawn = typeof drawnResponse extends fc.Arbitrary<infer T> ? T : never;

const KIND_NAMES = Object.keys(KINDS) as Kind[];

function responseOf(kind: Kind, drawn: Drawn): Response {
  const { tables, requests, namesInstruments } = kindOf(kind);
  const { from, nature, call, minute, content, cells } = drawn;
  const to = requests === 'days' ? Math.min(DAYS.length - 1, from + drawn.length) : from;
  const part =
    requests === 'instrument'
      ? 'instruments'
      : drawn.part === 'instruments' && !namesInstruments
        ? 'filtered'
        : drawn.part;
  const all = Array.from({ length: SYMBOLS }, (_, symbol) => symbol);
  const symbols =
    requests === 'instrument'
      ? [from % 2]
      : part === 'instruments'
        ? all.filter((symbol) => symbol % 4 === from % 2)
        : all;
  const rows: Sent[] = [];
  const lacks = content === 'some' ? drawn.few : drawn.missing;
  const hasRows = content !== 'none' && content !== 'rejected';
  for (const day of requests === 'once' ? [0] : DAYS.keys()) {
    const isRequested = requests === 'once' || (from <= day && day <= to);
    if (!hasRows || !isRequested || drawn.without.includes(day - from)) continue;
    // A response may have records of instruments that were not requested.
    for (const symbol of requests === 'instrument' ? symbols.slice(0, 1) : all) {
      if (lacks.includes((symbol + day) % SYMBOLS)) continue;
      const cell = cells[(symbol + 3 * day) % SYMBOLS] ?? { value: 0, saved: 0 };
      const table = drawn.tables[symbol % drawn.tables.length] ?? 0;
      rows.push({ type: 'row', table: table % tables.length, day, symbol, ...cell });
    }
  }
  // Of an undated table, the records of several days are about one row: none that was saved at the same time as another
  // and contradicts it, because the model does not know what becomes of these.
  const contradicts = (row: Sent, at: number, all: readonly Sent[]) =>
    row.type === 'row' &&
    tables[row.table]?.dated !== true &&
    all
      .slice(0, at)
      .some(
        (other) =>
          other.type === 'row' &&
          other.table === row.table &&
          other.symbol === row.symbol &&
          other.saved === row.saved &&
          other.value !== row.value,
      );
  const stored = rows.filter((row, at) => !contradicts(row, at, rows));
  // Saved at another time, as the model does not know what becomes of records that contradict each other: see
  // test/jobs/responses/conflicting-records.test.ts and conflicting-records.int.test.ts.
  const again = stored
    .slice(0, drawn.twice)
    .map((row) =>
      row.type === 'row'
        ? { ...row, value: (row.value + 1) % 2, saved: (row.saved + 1) % SAVED.length }
        : row,
    );
  const twice = [...stored, ...again];
  const listed = twice.filter((row, at) => !contradicts(row, at, twice));
  const bad = content === 'rejected' || content === 'partly' ? drawn.bad : [];
  const rejected = bad.map(({ type, symbol, day }): Sent => {
    const hasDay = tables[0].dated;
    if (type === 'stray' && hasDay) return { type, symbol };
    if (type === 'broken' && hasDay) return { type, symbol, day: Math.min(to, Math.max(from, day)) };
    return { type: 'unknown', symbol };
  });
  return { kind, call, minute, from, to, part, nature, symbols, sent: [...listed, ...rejected] };
}

const drawnStep = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      act: fc.constant('load' as const),
      together: fc.constantFrom(false, false, false, true),
      again: fc.constantFrom(false, false, false, false, false, false, true),
      killed: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('accept' as const), which: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constantFrom('replay' as const, 'empty' as const) }) },
);

/** Only responses of these kinds: EOD_TEST_KINDS=bhav,pledge. */
const CHOSEN = process.env.EOD_TEST_KINDS?.split(',').map((name) => KIND_NAMES.indexOf(name as Kind));

/**
 * A set: a database, and what happens to it. Its responses are of one or two kinds, so that most are about the same
 * rows.
 */
export const stepsOf = stepsWith(
  CHOSEN === undefined
    ? fc.uniqueArray(fc.nat(KIND_NAMES.length - 1), { minLength: 1, maxLength: 2 })
    : fc.constant(CHOSEN),
);

/** The same of responses to requests for some instruments each, with records of all. */
export const stepsOfSomeInstruments = stepsWith(fc.constant([KIND_NAMES.indexOf('pledge')]), {
  part: 'instruments',
});

function stepsWith(
  kinds: fc.Arbitrary<readonly number[]>,
  changes: Partial<Drawn> = {},
): fc.Arbitrary<readonly Step[]> {
  return fc
    .tuple(kinds, fc.array(fc.tuple(drawnStep, drawnResponse), { minLength: 2, maxLength: 11 }))
    .map(([kinds, drawn]) => {
      let left = 6;
      const entries = new Set<string>();
      return drawn.flatMap(([step, response]): Step[] => {
        if (step.act === 'accept') return [step];
        if (step.act !== 'load') return [{ act: step.act }];
        if (left === 0) return [];
        left -= 1;
        const kind = KIND_NAMES[kinds[response.kind % kinds.length] ?? 0] ?? 'bhav';
        let drawnResponse = responseOf(kind, { ...response, ...changes });
        // The same response in the same millisecond would be that response once more.
        const nameOf = (response: Response) =>
          JSON.stringify({ ...response, sent: `${bodyOf(response)}`, symbols: [] });
        while (entries.has(nameOf(drawnResponse)))
          drawnResponse = { ...drawnResponse, minute: drawnResponse.minute + 1 };
        entries.add(nameOf(drawnResponse));
        return [{ ...step, response: drawnResponse }];
      });
    });
}

/** A set and all smaller ones that lack one thing of it, the ones that lack most first. */
export function* smaller(steps: readonly Step[]): Generator<readonly Step[]> {
  for (const at of steps.keys()) yield steps.toSpliced(at, 1);
  for (const [at, step] of steps.entries()) {
    if (step.act !== 'load') continue;
    const replaced = (change: Partial<typeof step>) => steps.with(at, { ...step, ...change });
    const sent = (records: readonly Sent[]) => replaced({ response: { ...step.response, sent: records } });
    if (step.together) yield replaced({ together: false });
    if (step.again) yield replaced({ again: false });
    if (step.killed) yield replaced({ killed: false });
    const records = step.response.sent;
    for (let size = Math.ceil(records.length / 2); size >= 1; size = size > 1 ? Math.ceil(size / 2) : 0) {
      for (let from = 0; from < records.length; from += size) yield sent(records.toSpliced(from, size));
    }
  }
}

/** A set in a few lines, for people. */
export function describeSteps(steps: readonly Step[], positions: ReadonlyMap<Response, string>): string {
  return steps
    .map((step) => {
      if (step.act === 'accept') return `accept ${step.which}`;
      if (step.act !== 'load') return step.act;
      const { kind, from, to, part, nature, symbols, sent } = step.response;
      const records = sent.map((record) => {
        const on = record.type === 'row' || record.type === 'broken' ? `d${record.day}` : '';
        if (record.type !== 'row') return `${record.type}(${on} S${record.symbol})`;
        const saved = record.saved === 0 ? '' : ` saved${record.saved}`;
        return `${record.table === 0 ? '' : `t${record.table} `}${on} S${record.symbol}=${record.value}${saved}`;
      });
      return [
        step.together ? 'load at the same time' : 'load',
        positions.get(step.response),
        `${kind} d${from}..d${to}`,
        part === 'instruments' ? symbols.map((symbol) => `S${symbol}`).join('+') : part,
        ...(kind === 'ratios' ? [nature] : []),
        `[${records.join(', ')}]`,
        ...(step.again ? ['twice'] : []),
        ...(step.killed ? ['killed at first'] : []),
      ].join(' ');
    })
    .join('\n');
}
