import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { checkSample } from '../../src/cli/check-operations.ts';
import { draftDeclaration, readSavedResponse } from '../../src/extract/draft/draft.ts';
import { readDeclared } from '../../src/operations/declared.ts';
import { tablesFilledBy } from '../../src/operations/operation.ts';
import { allOperations, migratedTables } from '../../src/operations/registry.ts';
import { forAllAsync } from '../support/for-all.ts';

const ZONE = 'Asia/Kolkata';
const folder = mkdtempSync(join(tmpdir(), 'eod-draft-'));
afterAll(() => rmSync(folder, { recursive: true }));
const known = (await allOperations()).operations.map(({ operation }) => operation);
const taken = [...migratedTables, ...known.flatMap(tablesFilledBy)].map((table) => table.name);
let files = 0;

/** Drafts a declaration from a response, imports it and reads the response with it. */
async function tried(body: Buffer) {
  files += 1;
  const name = `GetDrafted${files}`;
  const input = { ...readSavedResponse(body), name, known, taken, timeZone: ZONE, today: '2025-02-27' };
  const text = draftDeclaration(input);
  const path = join(folder, `${name}.mjs`);
  writeFileSync(path, text);
  const { operation, problems } = await readDeclared({ name, path, from: 'folder' }, new Map());
  const errors = problems.filter(({ level }) => level === 'error').map((problem) => problem.text);
  return { text, errors, operation, read: operation && checkSample(operation, ZONE, body) };
}

const record = fc.dictionary(
  fc.oneof(
    fc.constantFrom('Symbol', 'ISIN', 'Date', 'Qty', 'Value', 'Code', 'Exchange', '__proto__', 'is_x'),
    fc.string({ minLength: 1 }).filter((name) => name.trim() !== ''),
  ),
  fc.oneof(
    fc.string(),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(
      null,
      true,
      false,
      '02-27-2025',
      '2025-02-27T10:00:00',
      1_740_614_400,
      '0012',
      '7.50',
      '27/02/2025',
      '1,23,234.50',
    ),
  ),
  { minKeys: 1, maxKeys: 8 },
);

test.each([
  ['a view', 'GetPrices', 'own_prices'],
  ['the table of a default operation', 'GetCorporateActions', 'own_corporate_actions'],
  ['the table of a file', 'GetSymbolChanges', 'own_symbol_changes'],
  ['the table of an operation of the catalogue', 'GetBulkDeals', 'own_bulk_deals'],
  ['nothing', 'GetVoting', 'voting'],
])('a name like that of %s', (_, name, table) => {
  const body = Buffer.from(JSON.stringify([{ Symbol: 'TCS', Votes: 3 }]));
  const input = { ...readSavedResponse(body), name, known, timeZone: ZONE, today: '2025-02-27' };
  const text = draftDeclaration({ ...input, taken });
  expect(text).toContain(`  name: '${table}', // guessed`);
  const again = draftDeclaration({ ...input, taken: [...taken, table] });
  expect(again).toContain(`  name: 'own_${table}', // guessed`);
});

test('any plain records: a declaration that is accepted and reads all of them', async () => {
  await forAllAsync([fc.array(record, { minLength: 1, maxLength: 6 })], { numRuns: 60 }, async (plain) => {
    // Each says what it is about; one of which no column reads anything is a reject.
    const records = plain.map((one, at) => ({ ...one, Symbol: `S${at}` }));
    const { errors, read } = await tried(Buffer.from(JSON.stringify(records)));
    expect(errors).toEqual([]);
    expect(read?.rejects).toEqual([]);
    expect(read?.records).toHaveLength(records.length);
  });
});

test('days before months and numbers with commas are read, and the day shows what is requested', async () => {
  const vote = (day: string, code: string, votes: string) => ({
    MeetingDate: day,
    Symbol: 'TCS',
    Branch: code,
    Votes: votes,
    VotesPolled: `${votes}.50`,
    CountedAt: `${day} 21:15:00`,
    ReceivedAt: '02-27-2025 21:02:02',
  });
  const records = [vote('27/02/2025', '012', '1,23,234'), vote('03/02/2025', '1,234', '950')];
  const { text, errors, read } = await tried(Buffer.from(JSON.stringify({ Value: records })));
  expect(errors).toEqual([]);
  expect(text).toContain("request: { dates: 'range'");
  expect(text).toContain('// left out: ReceivedAt, as every table has it');
  expect(read?.rejects).toEqual([]);
  expect(read?.records.map(({ key }) => key)).toMatchObject([
    { meeting_date: '2025-02-27', symbol: 'TCS' },
    { meeting_date: '2025-02-03', symbol: 'TCS' },
  ]);
  expect(text).toMatch(/int8\('Votes', .* withoutCommas\('Votes'\)/);
  // A code with zeros before it is none of these.
  expect(text).toContain("text('Branch'");
  expect(text).toContain("datetime('CountedAt'");
  expect(text).toContain("compute: withoutCommas('VotesPolled')");
});
