import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Position, positionAt } from '../../../src/core/position.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { COVERAGE_STATES } from '../../../src/state/registers.ts';
import { sample } from '../../support/for-all.ts';
import { openStore, query } from '../../support/import-support.ts';
import { shuffled } from '../../support/shuffled.ts';
import { type EntryFact, type Registers, stateOf, sum } from './coverage-model.ts';

const positionOf = (at: number): Position => positionAt(new Date(Date.UTC(2025, 7, 29) + at));
const dayOf = (at: number) => new Date(Date.UTC(2025, 0, 1 + at)).toISOString().slice(0, 10);
const ENTRIES = 60;
const POSITIONS = 12;
/** Of these, the last ones are second readings of the newest responses, which are those that an entry's state shows. */
const RESPONSES = POSITIONS + 4;
const PAIR = { operation: 'GetBhavCopyCM', exchange: 'NSE' };

/** What is stored of an entry. */
interface StoredState {
  readonly state: string;
  readonly records: number;
  readonly diagnostic: string | null;
}

const numbers = fc.array(fc.nat(), { minLength: ENTRIES, maxLength: ENTRIES });

/** What one response, or a second reading of it, says of every entry. */
function factsOf(position: Position, drawn: readonly number[], suspicious: boolean): EntryFact[] {
  return drawn.map((number) => {
    const state = COVERAGE_STATES[number % COVERAGE_STATES.length] ?? 'failed';
    const diagnostic = number % 7 === 0 ? `diagnostic ${number % 100}` : null;
    return { position, state, records: number % 5, diagnostic, suspicious, emptied: false, withheld: false };
  });
}

test('coverage after responses in any order, some of them read again, has the registers and states of the model', async () => {
  const { db } = await openStore();
  const all = sample(numbers, { numRuns: RESPONSES, seed: 17 });
  const expected: object[] = [];
  for (let first = 0; first < all.length; first += RESPONSES) {
    const known: EntryFact[][] = Array.from({ length: ENTRIES }, () => []);
    const inOrder = all.slice(first, first + RESPONSES).map((drawn, at) => ({
      drawn,
      at: at < POSITIONS ? at : 2 * POSITIONS - 1 - at,
    }));
    for (const { drawn, at } of shuffled(inOrder, first)) {
      const position = positionOf(at);
      // Whether a response is suspicious does not change when it is read again.
      const suspicious = at % 4 === 2;
      const facts = factsOf(position, drawn, suspicious);
      const coverage = facts.map(({ state, records, diagnostic }, entry) => ({
        ...{ day: dayOf(first * ENTRIES + entry), instrument: '', variant: '', state, records },
        ...(diagnostic !== null && { diagnostic }),
      }));
      await writeCoverage(db.drizzle, { ...PAIR, runId: 1, windowId: null, position, coverage, suspicious });
      for (const [entry, fact] of facts.entries()) known[entry]?.push(fact);
    }
    for (const facts of known) {
      const { state, ...rest } = stateOf(sum(facts)) ?? { state: null };
      expected.push({ state, ...rest });
    }
  }
  const found = await db.drizzle.execute<StoredState & Record<string, unknown>>(
    sql`select state, records::int, diagnostic from etl.coverage order by day`,
  );
  expect(found.rows).toEqual(expected);
  expect(new Set(found.rows.map(({ state }) => state)).size).toBeGreaterThan(3);
});

test('the state of a row of coverage follows from its registers as in the model, whatever they are', async () => {
  const context = await openStore();
  const positions = [null, positionOf(1), positionOf(2), positionOf(3)];
  const registers: Registers[] = [];
  for (const state of COVERAGE_STATES) {
    for (const [at] of Array.from({ length: 256 }).entries()) {
      const position = (shift: number) => positions[(at >> shift) & 3] ?? null;
      const loadedAt = position(0);
      registers.push({
        last: { position: positionOf(2), state, records: 0, diagnostic: 'last' },
        loaded: loadedAt === null ? null : { position: loadedAt, records: 7 },
        suspicious: position(2),
        emptied: position(4),
        withheld: position(6),
      });
    }
  }
  const rows = registers.map(({ last, loaded, suspicious, emptied, withheld }, at) => ({
    ...{
      ...PAIR,
      day: dayOf(at),
      instrument: '',
      variant: '',
      last_position: last?.position,
      last_said: last?.state,
    },
    ...{ last_records: 0, last_diagnostic: 'last', loaded_position: loaded?.position ?? null },
    ...{ loaded_records: loaded?.records ?? null, suspicious_position: suspicious },
    ...{ emptied_position: emptied, withheld_position: withheld },
  }));
  const columns = Object.keys(rows[0] ?? {}).join(', ');
  await context.db.pool.query(
    `insert into etl.coverage (${columns}) select ${columns} from jsonb_populate_recordset(null::etl.coverage, $1)`,
    [JSON.stringify(rows)],
  );
  const states = await query(
    context,
    'select state, records::int, diagnostic from etl.coverage order by day',
  );
  expect(states).toEqual(registers.map(stateOf));
});
