import type { RunReport } from '../../src/state/runs/reports.ts';
import { type Bench, type Case, check, type Figures, type Site } from '../support/bench.ts';
import { type PlainCopy, plainCopy } from '../support/copy.ts';
import { bhavRequest, settingsFor, startPipeline, tradingDaysBefore } from '../support/pipeline.ts';
import { dropDatabase, freshDatabase, measured, migratedDatabase, withClient } from '../support/postgres.ts';
import { startChild } from '../support/processes.ts';
import { type ProcessorTimes, processorFigures } from '../support/processor.ts';
import { CORRECTED_EVERY, type SourceMode } from '../support/records.ts';

const COPY = 'plain COPY of the same rows';
const MB = 1e6;

const RELOADS = {
  'load-unchanged': { mode: 'first', what: 'the same responses again', least: 4 },
  'load-resaved': {
    mode: 'resaved',
    what: 'the same values, every record saved again later',
    least: 0.5,
  },
  'load-corrected': { mode: 'corrected', what: 'one row in a hundred corrected, with history', least: 1 },
} as const satisfies Record<string, { mode: SourceMode; what: string; least: number }>;

type Reload = keyof typeof RELOADS;
const RELOAD_NAMES = Object.keys(RELOADS) as Reload[];

const benches: readonly Bench[] = [
  {
    name: 'load-first',
    what: 'bhav copies as JSON over HTTP into empty tables, one worker',
    against: COPY,
    reach: [
      { figure: 'ratio', atLeast: 0.8 },
      { figure: 'peakRssMb', atMost: 300 },
    ],
  },
  {
    name: 'load-first-2',
    what: 'the same with two workers',
    against: COPY,
    reach: [{ figure: 'ratio', atLeast: 0.9 }],
  },
  ...RELOAD_NAMES.map(
    (name): Bench => ({
      name,
      what: RELOADS[name].what,
      against: COPY,
      reach: [
        { figure: 'ratio', atLeast: RELOADS[name].least },
        ...(name === 'load-unchanged' ? [{ figure: 'walShare', atMost: 0.001 }] : []),
      ],
    }),
  ),
  {
    name: 'replay',
    what: 'kept responses into emptied tables, no HTTP',
    against: COPY,
    reach: [{ figure: 'ratio', atLeast: 0.8 }],
  },
];

export const load: Case = {
  benches,
  async *rounds(site, wanted) {
    const days = tradingDaysBefore(Math.max(1, Math.round(site.records / site.source.recordsPerDay)));
    const size = { days, rows: days.length * site.source.recordsPerDay };
    for (let round = 1; round <= site.rounds; round++) yield await measureRound(site, wanted, size);
  },
};

interface Size {
  readonly days: readonly string[];
  readonly rows: number;
}

/** Everything is compared with one COPY, and what comes after the first load begins with a copy of its database. */
async function measureRound(site: Site, wanted: ReadonlySet<string>, size: Size) {
  const { server } = site;
  const figures: Record<string, Figures> = {};
  const twoWorkers = wanted.has('load-first-2') ? await loadFirst(site, size, 'load-first-2', 2) : null;
  const oneWorker = await loadFirst(site, size, 'load-first', 1);
  const copy = await copyOf(site, 'bench_load_first', size);
  if (twoWorkers !== null) figures['load-first-2'] = beside(copy, size, twoWorkers);
  if (wanted.has('load-first')) figures['load-first'] = beside(copy, size, oneWorker);
  for (const name of RELOAD_NAMES) {
    if (wanted.has(name)) figures[name] = beside(copy, size, await reload(site, size, name), oneWorker);
  }
  if (wanted.has('replay')) figures.replay = beside(copy, size, await replay(site, size));
  await dropDatabase(server.url, 'bench_load_first');
  return figures;
}

/** What one way of loading took. */
interface Taken {
  readonly seconds: number;
  readonly walBytes: number;
  readonly peakRssMb: number;
  readonly cpuSeconds: number;
  readonly processor: ProcessorTimes | null;
  readonly intoEmptySeconds?: number;
}

function beside(copy: PlainCopy, { rows }: Size, taken: Taken, first?: Taken): Figures {
  return {
    ratio: copy.seconds / taken.seconds,
    rowsPerSecond: rows / taken.seconds,
    seconds: taken.seconds,
    copySeconds: copy.seconds,
    walMb: taken.walBytes / MB,
    copyWalMb: copy.walBytes / MB,
    ...(first && { walShare: taken.walBytes / first.walBytes }),
    peakRssMb: taken.peakRssMb,
    cpuSeconds: taken.cpuSeconds,
    ...processorFigures(taken.processor, copy.processor),
    ...(taken.intoEmptySeconds !== undefined && { intoEmptySeconds: taken.intoEmptySeconds }),
  };
}

const databaseOf = (bench: string) => `bench_${bench.replaceAll('-', '_')}`;

async function loadFirst(
  site: Site,
  { days, rows }: Size,
  bench: 'load-first' | 'load-first-2',
  workers: number,
): Promise<Taken> {
  const url = await migratedDatabase(site.server.url, databaseOf(bench));
  const taken = await run(site, url, { workers, mode: 'first', days, again: false });
  checkCounts(bench, taken.report, { fetched: rows, inserted: rows });
  await checkRows(bench, url, { rows, history: 0 });
  if (workers > 1) await dropDatabase(site.server.url, databaseOf(bench));
  return taken;
}

async function reload(site: Site, { days, rows }: Size, bench: Reload): Promise<Taken> {
  const { mode } = RELOADS[bench];
  const url = await freshDatabase(site.server.url, databaseOf(bench), databaseOf('load-first'));
  const taken = await run(site, url, { workers: 1, mode, days, again: true });
  const corrected = days.length * Math.ceil(site.source.recordsPerDay / CORRECTED_EVERY);
  const updated = { first: 0, resaved: rows, corrected }[mode];
  checkCounts(bench, taken.report, { fetched: rows, updated, unchanged: rows - updated });
  await checkRows(bench, url, { rows, history: updated });
  await dropDatabase(site.server.url, databaseOf(bench));
  return taken;
}

async function replay(site: Site, { rows }: Size): Promise<Taken> {
  const url = await freshDatabase(site.server.url, 'bench_replay', databaseOf('load-first'));
  const again = async (counted: Record<string, number>) => {
    const child = await startChild('replay', settingsFor(url, site.source.url('first')), null);
    const { result, walBytes, processor } = await measured(url, () =>
      child.finish<{ seconds: number; report: RunReport }>(),
    );
    const { seconds, report } = result.result;
    checkCounts('replay', report, { fetched: rows, ...counted });
    await checkRows('replay', url, { rows, history: 0 });
    return { ...result, seconds, walBytes, processor };
  };
  const taken = await again({ unchanged: rows });
  await withClient(url, (client) => client.query('truncate market.bhavcopy_cm'));
  const { seconds: intoEmptySeconds } = await again({ inserted: rows });
  await dropDatabase(site.server.url, 'bench_replay');
  return { ...taken, intoEmptySeconds };
}

/** Runs one request with workers of its own. */
async function run(
  site: Site,
  url: string,
  options: {
    readonly workers: number;
    readonly mode: SourceMode;
    readonly days: readonly string[];
    readonly again: boolean;
  },
): Promise<Taken & { readonly report: RunReport }> {
  const pipeline = await startPipeline(site, url, options);
  const { result, seconds, walBytes, processor } = await measured(url, () =>
    pipeline.run(bhavRequest(options.days, options.again)),
  );
  const workers = await pipeline.stop();
  return {
    report: result,
    seconds,
    walBytes,
    processor,
    peakRssMb: Math.max(...workers.map((worker) => worker.peakRssMb)),
    cpuSeconds: workers.reduce((sum, worker) => sum + worker.cpuSeconds, 0),
  };
}

async function copyOf(site: Site, name: string, { rows }: Size): Promise<PlainCopy> {
  const url = new URL(site.server.url);
  url.pathname = `/${name}`;
  const copy = await plainCopy(site.server, url.href);
  check('plain COPY', { rows: [copy.rows, rows] });
  return copy;
}

/** All counts of a run; those that are not named are none. */
export function checkCounts(
  bench: string,
  report: Omit<RunReport, 'failures'>,
  due: Partial<Record<'fetched' | 'inserted' | 'updated' | 'unchanged', number>>,
): void {
  const { fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn } = report;
  const counts = { fetched, inserted, updated, unchanged, stale, duplicate, rejected, withdrawn };
  const expected: Readonly<Record<string, number>> = due;
  check(
    bench,
    Object.fromEntries(Object.entries(counts).map(([name, got]) => [name, [got, expected[name] ?? 0]])),
  );
}

export async function checkRows(
  bench: string,
  url: string,
  due: { readonly rows: number; readonly history: number },
): Promise<void> {
  const counted = await withClient(url, (client) =>
    client.query<{ rows: number; history: number }>(
      `select (select count(*) from market.bhavcopy_cm)::int as rows,
              (select count(*) from market_history.bhavcopy_cm)::int as history`,
    ),
  );
  const counts = counted.rows[0];
  check(bench, { rows: [counts?.rows, due.rows], history: [counts?.history, due.history] });
}
