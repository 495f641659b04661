import { expect, test } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { runCli } from '../../support/cli.ts';
import { spawnEod } from '../../support/eod.ts';
import { openStore } from '../../support/import-support.ts';
import { emptyTables, fetched, records, rowsOf, type SourceRecord } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Each is in a part of its own. */
const DAYS = Array.from({ length: 12 }, (_, at) => `${2014 + at}-08-${String(at + 1).padStart(2, '0')}`);
const [FIRST = '', LAST = ''] = [DAYS[0], DAYS.at(-1)];

const of = (day: string, sent: readonly SourceRecord[]): SourceRecord[] =>
  sent.map((record) => ({
    ...record,
    TradDt: `${day.slice(5)}-${day.slice(0, 4)}`,
    SavedAt: `${day.slice(5)}-${day.slice(0, 4)} 21:02:14`,
  }));

/** Three responses for each day: one corrects values and lacks a row, the last brings new ones for some instruments. */
async function loadDays(context: Context): Promise<void> {
  for (const day of DAYS) {
    await fetched(1, of(day, records(0, 150)))(context, { day });
    await fetched(2, of(day, records(1, 152, { ClosePrice: 3 })))(context, { day });
    await fetched(3, of(day, records(0, 2, { ClosePrice: 4 })))(context, {
      day,
      instruments: ['S000', 'S001'],
    });
  }
}

/** Responses that come while the replay is under way: for a day it has reached, and for one that it has not. */
async function loadNewer(context: Context): Promise<void> {
  await fetched(5, of(FIRST, records(0, 149, { ClosePrice: 5 })))(context, { day: FIRST });
  await fetched(5, of(LAST, records(2, 150, { ClosePrice: 5 })))(context, { day: LAST });
}

const REPLAY = "from etl.runs where kind = 'replay' order by id desc limit 1";
const all = async (context: Context, query: string) => (await context.db.pool.query(query)).rows;

const eod = (context: Context, ...args: readonly string[]) =>
  runCli(args, { env: { DATABASE_URL: context.config.DATABASE_URL ?? '' }, cwd: temporaryFolder() });

/** Starts a process and kills it when the newest replay has loaded so many windows. */
async function killAfter(context: Context, args: readonly string[], windows: number): Promise<void> {
  const doomed = spawnEod(args, {
    env: { DATABASE_URL: context.config.DATABASE_URL ?? '', EOD_CONCURRENCY: '1' },
    cwd: temporaryFolder(),
  });
  const loaded = `select (select count(*) from etl.windows w where w.run_id = r.id and w.finished_at is not null)::int as ended
    from etl.runs r where kind = 'replay' order by id desc limit 1`;
  await waitFor(
    async () => {
      const [newest] = await all(context, loaded);
      return (newest?.ended ?? 0) >= windows;
    },
    { everyMs: 2, what: `${windows} windows of eod ${args.join(' ')}` },
  );
  doomed.kill('SIGKILL');
  expect((await doomed.ended).signal).toBe('SIGKILL');
}

async function resume(context: Context): Promise<void> {
  const [run] = await all(context, `select id::int ${REPLAY}`);
  expect(await eod(context, 'runs', 'resume', String(run?.id))).toMatchObject({ code: 0 });
  expect(await all(context, `select state ${REPLAY}`)).toEqual([{ state: 'completed' }]);
}

const rowsAndHistory = async (context: Context) => [
  await rowsOf(context, 'market'),
  await rowsOf(context, 'market_history'),
];

/** The rows without their revision: how often one was written depends on the order of the loads. */
const values = async (context: Context) =>
  (await rowsOf(context, 'market')).bhavcopy_cm?.map((row) => row.replace(/,\d+\)$/, ''));

test('a replay that is killed twice and resumed ends in the rows of the responses, those that came meanwhile included', async () => {
  const undisturbed = await openStore();
  await loadDays(undisturbed);
  await loadNewer(undisturbed);
  const context = await openStore();
  await loadDays(context);

  const isRunning = async () => (await all(context, `select state ${REPLAY}`))[0]?.state === 'running';
  await emptyTables(context);
  await killAfter(context, ['replay', 'GetBhavCopyCM'], 3);
  expect(await isRunning()).toBe(true);
  await loadNewer(context);
  const [run] = await all(context, `select id::int ${REPLAY}`);
  // Until it is resumed, the status says that some rows may not follow from the responses.
  const unfinished = new RegExp(
    `replay ${run?.id} has folded \\d+ of 12 parts: rows of the others may not be what the kept responses say`,
  );
  const { stdout: meanwhile } = await eod(context, 'status');
  expect(meanwhile.replace(/\s+/g, ' ')).toMatch(unfinished);
  await killAfter(context, ['runs', 'resume', String(run?.id)], 7);
  await resume(context);
  expect(await values(context)).toEqual(await values(undisturbed));
  const { stdout: afterwards } = await eod(context, 'status');
  expect(afterwards).not.toContain('has folded');

  // In place nothing is written, killed or not.
  const before = await rowsAndHistory(context);
  const states = await all(context, 'select max(state) from etl.loads');
  await killAfter(context, ['replay', 'GetBhavCopyCM'], 1);
  if (await isRunning()) await resume(context);
  expect(await rowsAndHistory(context)).toEqual(before);
  expect(await all(context, 'select max(state) from etl.loads')).toEqual(states);
});

test('a replay that was begun can be cancelled, resumed or begun anew, and removes nothing', async () => {
  const context = await openStore();
  await loadDays(context);
  const before = await rowsAndHistory(context);
  await killAfter(context, ['replay', 'GetBhavCopyCM'], 3);
  expect(await rowsAndHistory(context)).toEqual(before);
  const [first] = await all(context, `select id::int ${REPLAY}`);
  expect(await eod(context, 'runs', 'cancel', String(first?.id))).toMatchObject({ code: 0 });
  const again = await eod(context, 'replay', 'GetBhavCopyCM');
  expect(again).toMatchObject({ code: 0 });
  expect(await rowsAndHistory(context)).toEqual(before);
});
