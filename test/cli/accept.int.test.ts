import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { transaction } from '../../src/postgres/transaction.ts';
import { acceptFindings, listFindings, runCheck } from '../../src/state/findings.ts';
import { openRejects, type RejectEntry, writeRejects } from '../../src/state/rejects.ts';
import { newRun, newWindow, openPool } from '../load/support.ts';
import { runCli, runJson } from '../support/cli.ts';
import { forAllAsync } from '../support/for-all.ts';
import { positionOf } from '../support/position.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const DAY = '2025-09-12';
const RANGE = { from: DAY, to: DAY, tradingDays: [] };

interface Contradiction {
  readonly instrument: string;
  readonly expected: string;
  readonly found: string;
}

/** Runs a check that finds exactly these. */
async function check(store: ReturnType<typeof openPool>, contradictions: readonly Contradiction[]) {
  const rows = contradictions.map(
    (contradiction) =>
      `('NSE', '${DAY}'::date, '${contradiction.instrument}', '${contradiction.expected}', '${contradiction.found}')`,
  );
  const none = 'select null, null::date, null, null, null where false';
  const sql = rows.length === 0 ? none : `values ${rows.join(', ')}`;
  return transaction(store, (tx) =>
    runCheck(
      tx,
      {
        name: 'previous_close',
        operation: 'GetBhavCopyCM',
        dated: true,
        sql: `select * from (${sql}) as f(exchange, date, instrument, expected, found)`,
      },
      RANGE,
      { severity: 'warning', runId: null },
    ),
  );
}

const instrument = fc.constantFrom('A', 'B');
const step = fc.oneof(
  fc.record({ kind: fc.constant('accept' as const), instrument }),
  fc.record({
    kind: fc.constant('check' as const),
    contradictions: fc.uniqueArray(fc.record({ instrument, value: fc.constantFrom('1', '2') }), {
      selector: (contradiction) => contradiction.instrument,
    }),
  }),
);

test('an accepted finding is listed again exactly when its check finds another value, or it was resolved in between', async ({
  url,
}) => {
  const store = openPool(url);
  await runCli(['migrate'], { cwd: temporaryFolder(), env: { DATABASE_URL: url } });
  await forAllAsync([fc.array(step, { maxLength: 8 })], { numRuns: 40 }, async (steps) => {
    await store.pool.query('delete from etl.findings');
    const open = new Map<string, string>();
    const accepted = new Map<string, string>();
    for (const step of steps) {
      if (step.kind === 'accept') {
        const value = open.get(step.instrument);
        const findings = (await listFindings(store.drizzle, { limit: 9 })).findings;
        const id = findings.find((finding) => finding.instrument === step.instrument)?.id;
        expect(id === undefined).toBe(value === undefined);
        if (id === undefined || value === undefined) continue;
        expect(await acceptFindings(store.drizzle, { id }, 'a person')).toBe(1);
        accepted.set(step.instrument, value);
        open.delete(step.instrument);
        continue;
      }
      open.clear();
      for (const name of ['A', 'B']) {
        const value = step.contradictions.find((contradiction) => contradiction.instrument === name)?.value;
        if (value !== accepted.get(name)) accepted.delete(name);
        if (value !== undefined && !accepted.has(name)) open.set(name, value);
      }
      const counts = await check(
        store,
        step.contradictions.map(({ instrument: name, value }) => ({
          instrument: name,
          expected: '9',
          found: value,
        })),
      );
      expect(counts.open).toBe(open.size);
    }
    const listed = (await listFindings(store.drizzle, { limit: 9 })).findings;
    expect(new Map(listed.map((finding) => [finding.instrument, finding.found]))).toEqual(open);
  });
});

const record = (close: string): RejectEntry => ({
  position: 0,
  record: { ScripId: 'AAA', ClosePrice: close },
  problems: [{ path: 'ClosePrice', message: 'is odd' }],
  day: DAY,
});

test('the commands that issues prints settle rejects and findings, single ones and groups', async ({
  url,
}) => {
  const store = openPool(url);
  const options = { cwd: temporaryFolder(), env: { DATABASE_URL: url } };
  await runCli(['migrate'], options);
  const runId = await newRun(store);
  const windowId = await newWindow(store, runId, 'running', { operation: 'GetBhavCopyCM', exchange: 'NSE' });
  const send = (second: number, ...entries: RejectEntry[]) =>
    transaction(store, (tx) =>
      writeRejects(tx, 'NSE', [
        {
          operation: 'GetBhavCopyCM',
          runId,
          windowId,
          position: positionOf(Date.parse(`${DAY}T20:00:0${second}Z`)),
          ...{ from: DAY, to: DAY, instruments: [], variant: '' },
          rejects: entries,
        },
      ]),
    );
  const commands = async () => {
    const { json } = await runJson<{ kind: string; command: string }[]>(['issues'], options);
    return json.map(({ command }) => command);
  };
  const run = (command = '') => runCli(command.split(' ').slice(1), options);

  await send(1, record('about 5'));
  const [command = ''] = await commands();
  expect(command).toMatch(/^eod rejects accept \d+$/);
  const id = command.replace(/\D+/g, '');
  expect(await run(command)).toMatchObject({
    code: 0,
    stdout: '1 reject accepted: not stored, and no longer listed\n',
  });
  expect(await commands()).toEqual([]);
  expect((await run(command)).stderr).toContain(`reject ${id} cannot be accepted: it is not open`);
  expect((await run(`eod rejects ${id}`)).stdout).toMatch(/; accepted by \S+ at /);
  expect((await run('eod rejects retry')).stdout).toBe('no open rejects\n');

  // The same record in the next response is the same reject, others are new.
  await send(
    2,
    record('about 5'),
    { ...record('about 6'), position: 1 },
    { ...record('about 7'), position: 2 },
  );
  expect(await commands()).toEqual([
    `eod rejects accept --operation GetBhavCopyCM --exchange NSE --from ${DAY} --to ${DAY}`,
  ]);
  const text = (await runCli(['issues'], options)).stdout;
  expect(text).toContain('2 rejects: Prices, bhavcopy_cm NSE 2025-09-12\n    for example: ClosePrice is odd');
  expect(text).toContain('\n1 issue: 1 with 2 rejects\n');
  expect((await run((await commands())[0])).stdout).toMatch(/^2 rejects accepted/);
  expect(await openRejects(store.drizzle, {}, 9)).toEqual([]);
  // They stay unresolved: it is not known which securities they are about, so nobody can say that no band was hit.
  const unresolved = await store.pool.query('select from etl.rejects where resolved_at is null');
  expect(unresolved.rowCount).toBe(3);

  const off = { expected: '10', found: '10.1' };
  await check(store, [
    { instrument: 'AAA', ...off },
    { instrument: 'BBB', expected: '10', found: '30' },
  ]);
  const group = `eod findings accept --check previous_close --exchange NSE --from ${DAY} --to ${DAY}`;
  expect(await commands()).toEqual([group]);
  expect((await runCli(['issues'], options)).stdout).toContain('for example: BBB: expected 10, found 30');
  expect((await run(group.replace('NSE', 'BSE'))).stdout).toBe('no open finding matches\n');
  expect(await run(group)).toMatchObject({
    code: 0,
    stdout: '2 findings accepted: listed again once either value changes\n',
  });
  expect(await commands()).toEqual([]);
  expect((await run('eod findings --resolved --limit 1')).stdout).toMatch(
    /^finding +state .*\n +\d+ +accepted /,
  );
  await check(store, [{ instrument: 'AAA', expected: '10', found: '11' }]);
  const [single = ''] = await commands();
  expect(single).toMatch(/^eod findings accept \d+$/);
  expect((await run(single)).stdout).toMatch(/^1 finding accepted/);
  expect((await run(single.replace('accept ', ''))).stdout).toMatch(/\naccepted by \S+ at /);
});

test('rejects of a response of which nothing was stored are settled by loading it again', async ({ url }) => {
  const store = openPool(url);
  const options = { cwd: temporaryFolder(), env: { DATABASE_URL: url } };
  const line = (at: number, close: string) =>
    `S${at},EQ,10,10,10,${close},10,10,5,50,12-SEP-2025,1,INE000A0${at}010,`;
  const file = (bad: number) => {
    const lines = Array.from({ length: 20 }, (_, at) => line(at + 10, at < bad ? 'about 10' : '10'));
    const header =
      'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN,';
    writeFileSync(join(options.cwd, 'cm.csv'), `${[header, ...lines].join('\n')}\n`);
  };
  file(12);
  await runCli(['import', 'cm.csv'], options);
  const listed = () => runJson<{ kind: string; command: string; items: number }[]>(['issues'], options);
  const { json } = await listed();
  expect(json).toMatchObject([
    { kind: 'reject', items: 12, command: expect.stringMatching(/^eod import .*cm\.csv --force$/) },
  ]);
  expect((await runCli(['issues'], options)).stdout).toMatch(
    /12 of 20 records were rejected .*none of them\s+was\s+stored/s,
  );
  const id = (await openRejects(store.drizzle, {}, 1))[0]?.id;
  expect((await runCli(['rejects', 'accept', String(id)], options)).stderr).toContain(
    'nothing of its response was stored',
  );
  expect((await runCli(['rejects', 'accept', '--exchange', 'NSE'], options)).stdout).toBe(
    'no matching reject is open and part of a response that was stored\n',
  );
  expect((await listed()).json).toHaveLength(1);
  file(0);
  await runCli((json[0]?.command ?? '').split(' ').slice(1), options);
  expect((await listed()).json).toEqual([]);
});

test('nothing is accepted unless the command says which', async ({ url }) => {
  const options = { cwd: temporaryFolder(), env: { DATABASE_URL: url } };
  for (const list of ['rejects', 'findings'])
    expect(await runCli([list, 'accept'], options)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`say which: eod ${list} accept`),
    });
});
