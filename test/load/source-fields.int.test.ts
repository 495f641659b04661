import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Place } from '../../src/core/place.ts';
import type { Database } from '../../src/load/database/database.ts';
import { transaction } from '../../src/load/database/transaction.ts';
import { noteLayout, type SentFields } from '../../src/load/state/answers/layouts.ts';
import { readSchemaChanges } from '../../src/load/state/answers/schema-changes.ts';
import type { FieldType } from '../../src/operations/fields.ts';
import { openStore } from '../jobs/import-support.ts';
import { forAllAsync } from '../support/for-all.ts';

const OPERATION = 'GetCircuitBreakers';
/** Fields that no declaration reads, and types that differ in every way. */
const FIELDS = ['Alpha', 'Beta'];
const TYPES: readonly (FieldType | null)[] = ['number', 'digits', 'text', 'mixed', null];

interface Answer {
  readonly runId: number;
  /** The type of each field; undefined where it is not sent. */
  readonly types: readonly (FieldType | null | undefined)[];
  readonly records: number;
}

/** Mostly regular, so that fields vanish now and then. */
const answer = fc.record({
  runId: fc.integer({ min: 1, max: 4 }),
  types: fc.tuple(
    ...FIELDS.map(() =>
      fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, fc.constantFrom(...TYPES)),
    ),
  ),
  records: fc.integer({ min: 1, max: 9 }),
});
/** Answers come in blocks with the same fields. */
const history = fc
  .array(fc.tuple(answer, fc.integer({ min: 1, max: 5 })), { minLength: 1, maxLength: 5 })
  .map((blocks) =>
    blocks.flatMap(([one, times]) =>
      Array.from({ length: times }, (_, at) => ({ ...one, runId: one.runId + at })),
    ),
  );

const sentOf = ({ types, records }: Answer): SentFields => ({
  records,
  fields: FIELDS.flatMap((name, at) => {
    const type = types[at];
    if (type === undefined) return [];
    const example = type === null ? null : `a ${type}`;
    return [{ name, plain: name.toLowerCase(), type, example, values: type === null ? 0 : records - 1 }];
  }),
});

const placeOf = (at: number) => new Date(Date.UTC(2025, 0, 1, 0, at)).toISOString() as Place;

let db: Database;
let exchanges = 0;
beforeAll(async () => {
  db = (await openStore()).db;
});

/** Notes answers, some at once, in an order of its own. */
async function note(answers: readonly Answer[], order: readonly number[], base: number) {
  exchanges += 1;
  const exchange = `X${exchanges}`;
  for (const at of order) {
    await db.pool.query(
      `insert into etl.answers (place, run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered, called_on, fetched_at)
       values ($1, $2, 1, $3, $4, '2025-01-01', '2025-01-01', '{}', '{}', '', false, '2025-01-01', $1)`,
      [placeOf(base + at), answers[at]?.runId, OPERATION, exchange],
    );
  }
  const work = [...order];
  const workers = [1, 2, 3].map(async () => {
    for (let at = work.shift(); at !== undefined; at = work.shift()) {
      const sent = sentOf(answers[at] as Answer);
      // Whoever tries again, or reads it again, changes nothing.
      const times = at % 3 === 0 ? 2 : 1;
      for (let tries = 0; tries < times; tries++)
        await transaction(db, (tx) => noteLayout(tx, placeOf(base + at), sent));
    }
  });
  await Promise.all(workers);
  return exchange;
}

/** What is known of an exchange, without its name and with places from 0. */
async function known(exchange: string, base: number) {
  const { rows } = await db.pool.query(
    `select layout, fields, first_run_id, last_run_id, answers, counts, extract(epoch from first_place - $2::timestamptz)::int / 60 as first,
            extract(epoch from last_place - $2::timestamptz)::int / 60 as last from etl.answer_layouts where exchange = $1 order by layout`,
    [exchange, placeOf(base)],
  );
  const changes = (await readSchemaChanges(db.drizzle)).filter((one) => one.exchange === exchange);
  return {
    layouts: rows,
    changes: changes.map(({ field, change, at, runId }) => {
      const answered = (Date.parse(at) - Date.parse(placeOf(base))) / 60_000;
      return { field, change, at: answered, runId };
    }),
  };
}

/** The fields that vanished, as they are found by reading the answers one by one. */
function vanishedIn(answers: readonly Answer[]) {
  return FIELDS.flatMap((field, place) => {
    const having = answers.flatMap(({ types }, at) => (types[place] === undefined ? [] : [at]));
    const [first = 0, last = 0] = [having[0], having.at(-1)];
    if (having.length < 3 || having.length !== last - first + 1) return [];
    const later = answers.flatMap(({ runId }, at) =>
      at > last && runId !== answers[last]?.runId ? [at] : [],
    );
    const third = later[2];
    return third === undefined ? [] : [{ field, at: third, runId: answers[third]?.runId }];
  });
}

const isNew = (answers: readonly Answer[], place: number) => {
  const first = answers.find(({ types }) => types[place] !== undefined);
  return first !== undefined && first.runId !== answers[0]?.runId;
};

describe('what is known of fields', () => {
  test('does not depend on the order in which answers are noted, nor on how often', async () => {
    let vanished = 0;
    let base = 0;
    const orders = history.chain((answers) =>
      fc.tuple(fc.constant(answers), fc.shuffledSubarray([...answers.keys()], { minLength: answers.length })),
    );
    await forAllAsync([orders], { numRuns: 10 }, async ([answers, order]) => {
      const [first, second] = [base, base + 1_000];
      base += 2_000;
      const inOrder = await known(await note(answers, [...answers.keys()], first), first);
      const shuffled = await known(await note(answers, order, second), second);
      expect(shuffled).toEqual(inOrder);
      const records = answers.reduce((sum, one) => sum + one.records, 0);
      expect(inOrder.layouts.reduce((sum, { counts }) => sum + Number(counts[0]), 0)).toBe(records);
      const told = inOrder.changes;
      const gone = told.filter(({ change }) => change === 'vanished');
      expect(gone.map(({ field, at, runId }) => ({ field, at, runId }))).toEqual(
        expect.arrayContaining(vanishedIn(answers)),
      );
      expect(gone).toHaveLength(vanishedIn(answers).length);
      vanished += gone.length;
      const fresh = told.filter(({ change }) => change === 'new').map(({ field }) => field);
      expect(fresh.sort()).toEqual(FIELDS.filter((_, place) => isNew(answers, place)));
    });
    expect(vanished).toBeGreaterThan(0);
  });
});
