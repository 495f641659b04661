import { setTimeout as pause } from 'node:timers/promises';
import type { Case, Figures, Site } from '../support/bench.ts';
import { bhavRequest, startPipeline, tradingDaysBefore } from '../support/pipeline.ts';
import { dropDatabase, measured, migratedDatabase, withClient } from '../support/postgres.ts';
import { checkCounts, checkRows } from './load.ts';

const LOOK_EVERY_MS = 50;

interface Loaded {
  readonly seconds: number;
  readonly peakRssMb: number;
  readonly deadlocks: number;
  /** Sessions of Postgres that wait for a lock of another: the mean of all looks. */
  readonly waiting: number;
}

/** Loads so many trading days with so many workers, and watches the locks. */
async function loadWith(
  site: Site,
  bench: string,
  { workers, dayCount }: { readonly workers: number; readonly dayCount: number },
): Promise<Loaded> {
  const days = tradingDaysBefore(dayCount);
  const rows = dayCount * site.source.recordsPerDay;
  const name = `bench_${bench.replace('-', '_')}`;
  const url = await migratedDatabase(site.server.url, name);
  const pipeline = await startPipeline(site, url, { workers });
  const { result, seconds } = await measured(url, () =>
    watchLocks(url, () => pipeline.run(bhavRequest(days))),
  );
  const processes = await pipeline.stop();
  checkCounts(bench, result.result, { fetched: rows, inserted: rows });
  await checkRows(bench, url, { rows, history: 0 });
  await dropDatabase(site.server.url, name);
  const peakRssMb = Math.max(...processes.map((process) => process.peakRssMb));
  return { seconds, peakRssMb, deadlocks: result.deadlocks, waiting: result.waiting };
}

async function watchLocks<Result>(url: string, work: () => Promise<Result>) {
  return withClient(url, async (client) => {
    const looks: number[] = [];
    const done = new AbortController();
    const watching = (async () => {
      while (!done.signal.aborted) {
        const result = await client.query<{ waiting: number }>(
          'select count(distinct pid)::int as waiting from pg_locks where not granted',
        );
        looks.push(result.rows[0]?.waiting ?? 0);
        await pause(LOOK_EVERY_MS, undefined, { signal: done.signal }).catch(() => undefined);
      }
    })();
    const result = await work().finally(() => done.abort());
    await watching;
    const counted = await client.query<{ deadlocks: number }>(
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    );
    return {
      result,
      deadlocks: counted.rows[0]?.deadlocks ?? 0,
      waiting: looks.reduce((sum, waiting) => sum + waiting, 0) / looks.length,
    };
  });
}

const daysOf = ({ source }: Site, records: number) => Math.max(1, Math.round(records / source.recordsPerDay));

export const scaleWorkers: Case = {
  benches: [
    {
      name: 'scale-workers',
      what: 'a first load with 2 and with 4 workers; locks are looked at meanwhile',
      against: 'the same with one worker',
      reach: [
        { figure: 'ratio2', atLeast: 0.9 },
        { figure: 'ratio4', atLeast: 0.9 },
        { figure: 'deadlocks', atMost: 0 },
        { figure: 'waiting', atMost: 2 },
      ],
    },
  ],
  async *rounds(site) {
    const dayCount = daysOf(site, site.records);
    for (let round = 1; round <= site.rounds; round++) {
      const twoWorkers = await loadWith(site, 'scale-workers', { workers: 2, dayCount });
      // Their counts are no other than those of two.
      const oneWorker = site.small
        ? twoWorkers
        : await loadWith(site, 'scale-workers', { workers: 1, dayCount });
      const fourWorkers = site.small
        ? twoWorkers
        : await loadWith(site, 'scale-workers', { workers: 4, dayCount });
      const figures: Figures = {
        ratio2: oneWorker.seconds / twoWorkers.seconds,
        ratio4: oneWorker.seconds / fourWorkers.seconds,
        deadlocks: oneWorker.deadlocks + twoWorkers.deadlocks + fourWorkers.deadlocks,
        waiting: fourWorkers.waiting,
        waiting2: twoWorkers.waiting,
        waiting1: oneWorker.waiting,
        seconds1: oneWorker.seconds,
        seconds2: twoWorkers.seconds,
        seconds4: fourWorkers.seconds,
      };
      yield { 'scale-workers': figures };
    }
  },
};

export const memory: Case = {
  benches: [
    {
      name: 'memory',
      what: 'highest memory of a worker over ten times the records',
      against: 'over a tenth of the records',
      reach: [
        { figure: 'ratio', atMost: 1.2 },
        { figure: 'peakRssMb', atMost: 300 },
      ],
    },
  ],
  async *rounds(site) {
    for (let round = 1; round <= site.rounds; round++) {
      const few = await loadWith(site, 'memory', {
        workers: 1,
        dayCount: daysOf(site, site.records / 10),
      });
      const many = site.small
        ? few
        : await loadWith(site, 'memory', { workers: 1, dayCount: daysOf(site, site.records * 10) });
      yield {
        memory: {
          ratio: many.peakRssMb / few.peakRssMb,
          peakRssMb: many.peakRssMb,
          fewPeakRssMb: few.peakRssMb,
          seconds: many.seconds,
        },
      };
    }
  },
};
