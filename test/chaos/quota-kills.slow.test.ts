import { randomBytes } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { type Program, startProgram } from '../support/chaos/process.ts';
import { backfill, ended, mostly, openPipeline, start } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const WORKER = fileURLToPath(new URL('../support/chaos/clocked-worker.mjs', import.meta.url));
const CALLS_PER_HOUR = 150;
const TURN = Date.parse('2025-09-12T23:00:00+05:30');

/** One clock for the source and all workers, whatever process they are in: a file says what it shows. */
function sharedClock(file: string) {
  let [standing, offset]: [number | null, number] = [null, 0];
  // Put in place as a whole: nobody reads half of it.
  const write = () => {
    writeFileSync(`${file}.new`, JSON.stringify({ standing, offset }));
    renameSync(`${file}.new`, file);
  };
  return {
    now: () => standing ?? Date.now() + offset,
    /** Stops the clock so many milliseconds before the turn of the hour. */
    standBeforeTurn(milliseconds: number) {
      standing = TURN - milliseconds;
      write();
    },
    run() {
      offset = (standing ?? 0) - Date.now();
      standing = null;
      write();
    },
  };
}

test.concurrent.for(mostly('redis'))(
  'workers killed while the hour runs out never spend it twice (queue on %s)',
  { timeout: 120_000 },
  async (backend, { onTestFinished }) => {
    const home = temporaryFolder();
    const clockFile = join(home, 'clock.json');
    const clock = sharedClock(clockFile);
    clock.standBeforeTurn(2_000);
    const sandbox = await openSandbox({
      clock,
      instrumentsPerExchange: 20,
      behaviour: { callsPerHour: CALLS_PER_HOUR, delayMs: 100 },
    });
    const pipeline = await openPipeline({
      sourceUrl: sandbox.url,
      backend,
      clock,
      settings: {
        EOD_ACCESS_KEY: `key-${randomBytes(6).toString('hex')}`,
        EOD_CALLS_PER_HOUR: String(CALLS_PER_HOUR),
        EOD_NIGHTLY_RESERVE: '0',
        EOD_TIMEOUT_MS: '3000',
      },
    });
    const programs: Program[] = [];
    onTestFinished(async () => {
      for (const program of programs) {
        program.kill('SIGKILL');
        await program.ended;
      }
    });
    const startOne = () => {
      const program = startProgram(process.execPath, [WORKER, clockFile], {
        name: `worker ${programs.length}`,
        logFile: join(home, `${programs.length}.log`),
        env: pipeline.environment,
      });
      programs.push(program);
      return program;
    };
    const runId = await start(
      pipeline,
      backfill({
        operations: ['GetFinRatioEOD'],
        from: '2025-09-11',
        to: '2025-09-11',
        instruments: Array.from({ length: 100 }, (_, index) => `INSTRUMENT${index}`),
      }),
    );
    const running = [startOne(), startOne(), startOne()];
    for (const calls of [20, 45, 70, 95]) {
      await waitFor(() => sandbox.stats().requests >= calls, { what: `${calls} calls`, timeoutMs: 60_000 });
      const killed = running.shift();
      killed?.kill('SIGKILL');
      running.push(startOne());
    }
    const usedUp = `select from etl.call_budget where calls >= ${CALLS_PER_HOUR}`;
    await waitFor(async () => (await pipeline.db.pool.query(usedUp)).rowCount === 1, {
      what: 'the end of the budget',
      timeoutMs: 60_000,
    });
    clock.run();
    const report = await ended(pipeline, runId, 60_000);

    expect(report).toMatchObject({ state: 'completed', windows: { total: 200, open: 0, failed: 0 } });
    const { byHour, byDiagnostic } = sandbox.stats();
    expect(byDiagnostic).toEqual({});
    const granted = await pipeline.db.pool.query<{ hour: string; calls: number }>(
      `select to_char(hour at time zone 'Asia/Kolkata', 'YYYY-MM-DD"T"HH24') as hour, calls from etl.call_budget`,
    );
    for (const { hour, calls } of granted.rows) {
      expect(byHour[hour] ?? 0).toBeLessThanOrEqual(calls);
      expect(calls).toBeLessThanOrEqual(CALLS_PER_HOUR);
    }
    expect(granted.rows.map(({ hour }) => hour).sort()).toEqual(Object.keys(byHour).sort());
    expect(Object.keys(byHour)).toHaveLength(2);
  },
);
