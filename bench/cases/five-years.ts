import { setTimeout as pause } from 'node:timers/promises';
import { sourceSettings } from '../../src/cli/source-settings.ts';
import type { Clock } from '../../src/core/clock.ts';
import { createSource } from '../../src/extract/index.ts';
import type { WorkContext } from '../../src/jobs/context.ts';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { pruneRuns } from '../../src/jobs/runs/prune-runs.ts';
import { runState, startRun } from '../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../src/jobs/worker/worker.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { reportRun } from '../../src/state/runs/reports.ts';
import { type Case, check, type Figures, type Site } from '../support/bench.ts';
import { median, table } from '../support/figures.ts';
import { openPlanner, settingsFor, tradingDaysBefore } from '../support/pipeline.ts';
import { dropDatabase, migratedDatabase, withClient } from '../support/postgres.ts';

const DATABASE = 'bench_five_years';
const NIGHTS = 1_300;
/** Nights whose median duration stands for the first and for the last. */
const SAMPLE = 20;
/** Nights before the first sample: until the lookback is full. */
const WARM_UP = 10;
/** `eod prune` is called once in so many nights. */
const PRUNE_EVERY = 20;

/** Nights of every operation, one after the other, with a clock that is set to each, and small responses. */
export const fiveYears: Case = {
  benches: [
    {
      name: 'five-years',
      what: `${NIGHTS} nights of all operations with small responses: the last night`,
      against: 'the first',
      reach: [
        { figure: 'ratio', atMost: 1.2 },
        // Loads, windows, coverage and runs are kept for good: a night of these responses adds so much.
        { figure: 'kbPerNight', atMost: 200 },
      ],
    },
  ],
  async *rounds(site) {
    for (let round = 1; round <= site.rounds; round++) yield { 'five-years': await simulate(site) };
  },
};

async function simulate(site: Site): Promise<Figures> {
  const scaled = Math.round(NIGHTS * Math.min(1, site.records / 1_000_000));
  const nights = tradingDaysBefore(site.small ? 2 : Math.max(WARM_UP + 2 * SAMPLE, scaled));
  let now = timeOf(nights[0] as string);
  const clock: Clock = { now: () => now };
  const sandbox = await startSandbox({ clock, instrumentsPerExchange: 5, accessKey: 'bench' });
  const url = await migratedDatabase(site.server.url, DATABASE);
  const settings = { ...settingsFor(url, sandbox.url), EOD_INSTRUMENT_LIMIT: '2' };
  const planner = await openPlanner(settings);
  const { config, log } = planner.context;
  const source = createSource(sourceSettings(config), log, clock);
  const context: WorkContext = { ...planner.context, clock, source };
  const worker = await startWorker(context);
  const durations: number[] = [];
  const sizes: TableSizes[] = [];
  for (const [nth, night] of nights.entries()) {
    now = timeOf(night);
    durations.push(await runNight(context, night));
    if (nth % PRUNE_EVERY === PRUNE_EVERY - 1) await pruneRuns(context);
    // A fifth of the nights each.
    if ((nth + 1) % Math.ceil(nights.length / 5) === 0 || nth === nights.length - 1) {
      sizes.push(await sizesOf(url, nth + 1));
    }
  }
  await worker.stop();
  await source.close();
  await planner.close();
  await sandbox.close();
  site.note('five-years', sizesText(sizes));
  const coverage = sizes.at(-1)?.tables.get('coverage')?.rows ?? 0;
  check('five-years', { 'coverage of every night': [coverage >= nights.length, true] });
  await dropDatabase(site.server.url, DATABASE);
  const sample = Math.min(SAMPLE, Math.ceil(nights.length / 4));
  const skipped = Math.min(WARM_UP, nights.length - sample);
  const firstSeconds = median(durations.slice(skipped, skipped + sample));
  const lastSeconds = median(durations.slice(-sample));
  return {
    ratio: lastSeconds / firstSeconds,
    kbPerNight: growth(sizes, nights.length),
    firstSeconds,
    lastSeconds,
    nights: nights.length,
  };
}

/** Late in the evening, when the data of the day is published, in the source's zone. */
const timeOf = (day: string) => Date.parse(`${day}T23:30:00+05:30`);

/** `eod nightly`. @returns how long it took, in seconds. */
async function runNight(context: WorkContext, date: string): Promise<number> {
  const start = performance.now();
  const runId = await startRun(context, await nightlyRequest(context, { date }), { tick: `night ${date}` });
  if (runId === null) throw new Error(`the night of ${date} was not written`);
  while ((await runState(context, runId)) === 'running') await pause(5);
  const seconds = (performance.now() - start) / 1000;
  const { state, windows, rejected } = await reportRun(context, runId);
  check(`the night of ${date}`, {
    state: [state, 'completed'],
    failed: [windows.failed + windows.blocked + windows.cancelled, 0],
    'windows without a trading day of theirs': [windows.loaded > 0, true],
    rejected: [rejected, 0],
  });
  return seconds;
}

interface TableSizes {
  readonly nights: number;
  /** Rows and bytes with indexes and long values, by table of `etl`. */
  readonly tables: ReadonlyMap<string, { readonly rows: number; readonly bytes: number }>;
}

async function sizesOf(url: string, nights: number): Promise<TableSizes> {
  return withClient(url, async (client) => {
    await client.query('vacuum analyze');
    const result = await client.query<{ name: string; rows: string; bytes: string }>(
      `select relname as name, greatest(reltuples, 0)::bigint as rows, pg_total_relation_size(oid) as bytes
         from pg_class where relnamespace = 'etl'::regnamespace and relkind = 'r' order by relname`,
    );
    return {
      nights,
      tables: new Map(
        result.rows.map(({ name, rows, bytes }) => [name, { rows: Number(rows), bytes: Number(bytes) }]),
      ),
    };
  });
}

const bytesOf = (sizes: TableSizes | undefined) =>
  [...(sizes?.tables.values() ?? [])].reduce((sum, { bytes }) => sum + bytes, 0);

/** Kilobytes that all tables of `etl` grow in a night, in the last fifth. */
function growth(sizes: readonly TableSizes[], nights: number): number {
  const [before, last] = [sizes.at(-2), sizes.at(-1)];
  return (bytesOf(last) - bytesOf(before)) / 1e3 / (nights - (before?.nights ?? 0));
}

function sizesText(sizes: readonly TableSizes[]): string {
  const names = [...(sizes.at(-1)?.tables.keys() ?? [])];
  return table(
    ['rows (kB) after nights', ...sizes.map(({ nights }) => String(nights))],
    names.map((name) => [
      name,
      ...sizes.map(({ tables }) => {
        const { rows, bytes } = tables.get(name) ?? { rows: 0, bytes: 0 };
        return `${rows} (${Math.round(bytes / 1e3)})`;
      }),
    ]),
  );
}
