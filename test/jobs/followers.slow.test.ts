import { beforeAll, expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import type { Day } from '../../src/core/days.ts';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { tables } from '../../src/operations/registry.ts';
import { runJson } from '../support/cli.ts';
import { openPostgresCopy, type PostgresCopy } from '../support/followers/postgres-copy.ts';
import { importInto, linesOf, NSE_UDIFF, newFile } from '../support/import-support.ts';
import { ended, openPipeline, type Pipeline, start } from '../support/pipeline.ts';
import { fixReading, type SourceRecord, startMeddler } from '../support/replay-support.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const NIGHTS = 8;
/**
 * The day of the imported file, the 29th of August, is not requested before its night, however many nights there are.
 */
const DAYS = loadCalendar().lastTradingDays('NSE', '2025-09-30', NIGHTS);
/** The nights after which something else happens, too. */
const IMPORT = 2;
const REPLAY = 4;
/** The operations of which most rows change. */
const USUAL = ['GetBhavCopyCM NSE', 'GetTop5GainersLosers BSE', 'GetCorporateActionsCategories BSE'];

let now = 0;
let pipeline: Pipeline;
let url: string;
let copy: PostgresCopy;
/** What the source corrects and no longer lists in a night. */
let meddle: (records: SourceRecord[]) => void = () => undefined;

beforeAll(async () => {
  const clock = { now: () => now };
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 40 });
  const meddler = await startMeddler(sandbox.url);
  meddler.meddle = (records) => meddle(records);
  const settings = { EOD_INSTRUMENT_LIMIT: '1', EOD_LOOKBACK_SESSIONS: '1' };
  pipeline = await openPipeline({ sourceUrl: meddler.url, clock, settings, backend: 'redis' });
  url = pipeline.config.DATABASE_URL ?? '';
  copy = await openPostgresCopy(url);
});

const numberOf = (text: string) =>
  [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 9_973, 7);

/** Of each response some rows are corrected, and some are not listed that were the night before. */
function meddleIn(night: number): void {
  meddle = (records) => {
    const kept = records.filter(({ Symbol: symbol = '', PurposeCode: code = '', SrNo: rank = '' }) => {
      const id = `${symbol}${code}${rank}`;
      return id === '' || (numberOf(id) + night) % 13 > 0;
    });
    records.splice(0, records.length, ...kept);
    raise(records, 5, night, night / 100);
  };
}

/** Raises the closes of every so many shares. */
function raise(records: SourceRecord[], every: number, rest: number, by: number): void {
  for (const record of records) {
    if (record.ClosePrice !== undefined && numberOf(String(record.Symbol)) % every === rest % every)
      record.ClosePrice = Number(record.ClosePrice) + by;
  }
}

async function runNight(night: number, day: Day): Promise<void> {
  now = Date.parse(`${day}T22:05:00+05:30`);
  meddleIn(night);
  const request = await nightlyRequest(pipeline, { date: day });
  const targets = request.targets.filter(({ operation, exchange }) =>
    USUAL.includes(`${operation} ${exchange}`),
  );
  const report = await ended(pipeline, await start(pipeline, { ...request, targets }));
  expect(report).toMatchObject({ state: 'completed', failures: [] });
}

/** What happens besides, on the day after a night. */
async function workByDay(night: number): Promise<void> {
  if (night === IMPORT) {
    const file = newFile('BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv', linesOf(NSE_UDIFF).slice(0, 41));
    expect(await importInto(pipeline, [file])).toMatchObject({ state: 'completed', inserted: 40 });
  }
  if (night !== REPLAY) return;
  await fixReading(pipeline, (records) => raise(records, 7, night, 0.5));
  await eod('replay', 'GetBhavCopyCM');
}

/** What a command prints as JSON. */
async function eod<Printed>(...args: string[]): Promise<Printed> {
  const { code, stderr, json } = await runJson<Printed>(args, {
    cwd: temporaryFolder(),
    env: pipeline.environment,
  });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return json;
}

/** A digest of the values of each table. */
async function contentOf(client: Pick<PostgresCopy['client'], 'query'>, schema = '') {
  const digests: Record<string, unknown> = {};
  for (const table of tables) {
    const columns = table.fields.map(({ column }) => `"${column}"`).join();
    const { rows } = await client.query(
      `select md5(string_agg(r::text, ' ' order by r::text)) as digest from (select ${columns} from ${schema}${table.name}) r`,
    );
    digests[table.name] = rows[0];
  }
  return digests;
}

test(`copies that follow by changes alone are equal on each of ${NIGHTS} mornings, with corrections, withdrawals, an import and a replay`, async () => {
  const worker = await startWorker(pipeline);
  for (const [night, day] of DAYS.entries()) {
    await runNight(night, day);
    await workByDay(night);
    await copy.caughtUp();
    for (const [name, [mine, first]] of Object.entries(await copy.digests()))
      expect(mine, `${name} in Postgres on the morning after ${day}`).toBe(first);
  }
  await worker.stop();
  expect(await contentOf(copy.client)).toEqual(await contentOf(pipeline.db.pool, 'market.'));
  const applied = (change: string) => copy.applied.get(change) ?? 0;
  console.log(`${NIGHTS} nights: ${JSON.stringify(Object.fromEntries(copy.applied))}`);
  for (const change of ['insert', 'update', 'withdraw', 'relist'])
    expect(applied(change)).toBeGreaterThan(NIGHTS);
}, 200_000);
