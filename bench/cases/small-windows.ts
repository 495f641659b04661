import type { RunReport } from '../../src/state/runs/reports.ts';
import { type Case, check, type Site } from '../support/bench.ts';
import { prepareLeast } from '../support/least-window.ts';
import { LAST_TRADING_DAY, openPlanner, settingsFor, startPipeline } from '../support/pipeline.ts';
import { dropDatabase, measured, migratedDatabase } from '../support/postgres.ts';
import { startChild } from '../support/processes.ts';

const DATABASE = 'bench_small_windows';
/** Both kinds of reports are requested, each with a window. */
const WINDOWS_PER_INSTRUMENT = 2;

/** Windows of one row each, as the ratio operations make them. */
export const smallWindows: Case = {
  benches: [
    {
      name: 'small-windows',
      what: 'windows of one row with the whole ledger, one worker',
      against: 'jobs of BullMQ that do nothing, in the same queue',
      reach: [{ figure: 'ratio', atLeast: 0.5 }],
    },
  ],
  async *rounds(site) {
    const instruments = site.small ? 4 : Math.max(10, Math.round(site.records / 1000));
    const windows = instruments * WINDOWS_PER_INSTRUMENT;
    for (let round = 1; round <= site.rounds; round++) {
      const bareSeconds = await runBareJobs(site, windows);
      const leastSeconds = await runBareJobs(site, windows, { least: true });
      const url = await migratedDatabase(site.server.url, DATABASE);
      const pipeline = await startPipeline(site, url);
      const first = await measured(url, () => pipeline.run(request(instruments, false)));
      const again = await measured(url, () => pipeline.run(request(instruments, true)));
      await pipeline.stop();
      await dropDatabase(site.server.url, DATABASE);
      checkRun(first.result, windows, 'inserted');
      checkRun(again.result, windows, 'unchanged');
      yield {
        'small-windows': {
          ratio: bareSeconds / first.seconds,
          windowsPerSecond: windows / first.seconds,
          againPerSecond: windows / again.seconds,
          bareJobsPerSecond: windows / bareSeconds,
          leastPerSecond: windows / leastSeconds,
          leastRatio: bareSeconds / leastSeconds,
          windows,
          walKbPerWindow: first.walBytes / 1e3 / windows,
        },
      };
    }
  },
};

function request(instruments: number, again: boolean) {
  return {
    kind: 'backfill' as const,
    targets: [
      {
        operation: 'GetFinRatioEOD',
        exchange: 'NSE',
        from: LAST_TRADING_DAY,
        to: LAST_TRADING_DAY,
        refetchFrom: again ? LAST_TRADING_DAY : null,
      },
    ],
    instruments: Array.from({ length: instruments }, (_, at) => `SYMBOL${at}`),
    options: {},
    live: false,
  };
}

function checkRun(report: RunReport, windows: number, became: 'inserted' | 'unchanged'): void {
  check('small-windows', {
    windows: [report.windows.loaded, windows],
    fetched: [report.fetched, windows],
    [became]: [report[became], windows],
  });
}

/**
 * Seconds from the first job's way into the queue to the end of the last.
 *
 * @param options.least each job does the least for a window, see `loadLeast`; without it, nothing.
 */
async function runBareJobs({ server, source }: Site, jobs: number, { least = false } = {}): Promise<number> {
  const url = await migratedDatabase(server.url, DATABASE);
  const settings = settingsFor(url, source.url('first'));
  if (least) await prepareLeast(url, jobs);
  const planner = await openPlanner(settings);
  const leastOf = least ? `${source.url('first')}/GetFinRatioEOD?from=0` : undefined;
  const worker = await startChild('bareJobs', settings, { jobs, leastOf });
  const { windows } = planner.context.queues;
  const started = Date.now();
  await windows.backfill.addBulk(
    Array.from({ length: jobs }, (_, at) => ({
      name: 'window',
      data: { runId: 0, windowId: at },
      opts: {
        jobId: `bare-${at}`,
        attempts: 1_000_000,
        priority: 1_000_000,
        removeOnComplete: true,
        removeOnFail: true,
      },
    })),
  );
  const { result } = await worker.finish<{ endedAt: number }>();
  await planner.close();
  return (result.endedAt - started) / 1000;
}
