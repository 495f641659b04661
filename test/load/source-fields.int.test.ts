import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Position } from '../../src/core/position.ts';
import type { Database } from '../../src/load/database/database.ts';
import { transaction } from '../../src/load/database/transaction.ts';
import { noteLayout, type SentFields } from '../../src/load/state/responses/layouts.ts';
import { readSchemaChanges } from '../../src/load/state/responses/schema-changes.ts';
import type { FieldType } from '../../src/operations/fields.ts';
import { openStore } from '../jobs/import-support.ts';
import { forAllAsync } from '../support/for-all.ts';

const OPERATION = 'GetCircuitBreakers';
/** Fields that no declaration reads, and types that differ in every way. */
const FIELDS = ['Alpha', 'Beta'];
const TYPES: readonly (FieldType | null)[] = ['number', 'digits', 'text', 'mixed', null];

interface Response {
  readonly runId: number;
  /** The type of each field; undefined where it is not sent. */
  readonly types: readonly (FieldType | null | undefined)[];
  readonly records: number;
}

/** Mostly regular, so that fields vanish now and then. */
const response = fc.record({
  runId: fc.integer({ min: 1, max: 4 }),
  types: fc.tuple(
    ...FIELDS.map(() =>
      fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, fc.constantFrom(...TYPES)),
    ),
  ),
  records: fc.integer({ min: 1, max: 9 }),
});
/** Responses come in blocks with the same fields. */
const history = fc
  .array(fc.tuple(response, fc.integer({ min: 1, max: 5 })), { minLength: 1, maxLength: 5 })
  .map((blocks) =>
    blocks.flatMap(([one, times]) =>
      Array.from({ length: times }, (_, at) => ({ ...one, runId: one.runId + at })),
    ),
  );

const sentOf = ({ types, records }: Response): SentFields => ({
  records,
  fields: FIELDS.flatMap((name, at) => {
    const type = types[at];
    if (type === undefined) return [];
    const example = type === null ? null : `a ${type}`;
    return [{ name, plain: name.toLowerCase(), type, example, values: type === null ? 0 : records - 1 }];
  }),
});

const positionOf = (at: number) => new Date(Date.UTC(2025, 0, 1, 0, at)).toISOString() as Position;

let db: Database;
let exchanges = 0;
beforeAll(async () => {
  db = (await openStore()).db;
});

/** Notes responses, some at once, in an order of its own. */
async function note(responses: readonly Response[], order: readonly number[], base: number) {
  exchanges += 1;
  const exchange = `X${exchanges}`;
  for (const at of order) {
    await db.pool.query(
      `insert into etl.responses (position, run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered, called_on, fetched_at)
       values ($1, $2, 1, $3, $4, '2025-01-01', '2025-01-01', '{}', '{}', '', false, '2025-01-01', $1)`,
      [positionOf(base + at), responses[at]?.runId, OPERATION, exchange],
    );
  }
  const work = [...order];
  const workers = [1, 2, 3].map(async () => {
    for (let at = work.shift(); at !== undefined; at = work.shift()) {
      const sent = sentOf(responses[at] as Response);
      // Anyone who tries again, or reads it again, changes nothing.
      const times = at % 3 === 0 ? 2 : 1;
      for (let tries = 0; tries < times; tries++)
        await transaction(db, (tx) => noteLayout(tx, positionOf(base + at), sent));
    }
  });
  await Promise.all(workers);
  return exchange;
}

/** What is known of an exchange, without its name and with positions from 0. */
async function known(exchange: string, base: number) {
  const { rows } = await db.pool.query(
    `select layout, fields, first_run_id, last_run_id, responses, counts, extract(epoch from first_position - $2::timestamptz)::int / 60 as first,
            extract(epoch from last_position - $2::timestamptz)::int / 60 as last from etl.response_layouts where exchange = $1 order by layout`,
    [exchange, positionOf(base)],
  );
  const changes = (await readSchemaChanges(db.drizzle)).filter((one) => one.exchange === exchange);
  return {
    layouts: rows,
    changes: changes.map(({ field, change, at, runId }) => {
      const covered = (Date.parse(at) - Date.parse(positionOf(base))) / 60_000;
      return { field, change, at: covered, runId };
    }),
  };
}

/** The fields that vanished, as they are found by reading the responses one by one. */
function vanishedIn(responses: readonly Response[]) {
  return FIELDS.flatMap((field, position) => {
    const having = responses.flatMap(({ types }, at) => (types[position] === undefined ? [] : [at]));
    const [first = 0, last = 0] = [having[0], having.at(-1)];
    if (having.length < 3 || having.length !== last - first + 1) return [];
    const later = responses.flatMap(({ runId }, at) =>
      at > last && runId !== responses[last]?.runId ? [at] : [],
    );
    const third = later[2];
    return third === undefined ? [] : [{ field, at: third, runId: responses[third]?.runId }];
  });
}

const isNew = (responses: readonly Response[], position: number) => {
  const first = responses.find(({ types }) => types[position] !== undefined);
  return first !== undefined && first.runId !== responses[0]?.runId;
};

describe('what is known of fields', () => {
  test('does not depend on the order in which responses are noted, nor on how often', async () => {
    let vanished = 0;
    let base = 0;
    const orders = history.chain((responses) =>
      fc.tuple(
        fc.constant(responses),
        fc.shuffledSubarray([...responses.keys()], { minLength: responses.length }),
      ),
    );
    await forAllAsync([orders], { numRuns: 10 }, async ([responses, order]) => {
      const [first, second] = [base, base + 1_000];
      base += 2_000;
      const inOrder = await known(await note(responses, [...responses.keys()], first), first);
      const shuffled = await known(await note(responses, order, second), second);
      expect(shuffled).toEqual(inOrder);
      const records = responses.reduce((sum, one) => sum + one.records, 0);
      expect(inOrder.layouts.reduce((sum, { counts }) => sum + Number(counts[0]), 0)).toBe(records);
      const reported = inOrder.changes;
      const gone = reported.filter(({ change }) => change === 'vanished');
      expect(gone.map(({ field, at, runId }) => ({ field, at, runId }))).toEqual(
        expect.arrayContaining(vanishedIn(responses)),
      );
      expect(gone).toHaveLength(vanishedIn(responses).length);
      vanished += gone.length;
      const fresh = reported.filter(({ change }) => change === 'new').map(({ field }) => field);
      expect(fresh.sort()).toEqual(FIELDS.filter((_, position) => isNew(responses, position)));
    });
    expect(vanished).toBeGreaterThan(0);
  });
});
