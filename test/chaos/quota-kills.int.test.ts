import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import { type Program, startProgram } from '../support/chaos/process.ts';
import { testDatabase } from '../support/database.ts';
import { backends, backfill, ended, openPipeline, start } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const WORKER = fileURLToPath(new URL('../support/chaos/shifted-worker.ts', import.meta.url));
const CALLS_PER_HOUR = 150;
/** From the first worker's start to the turn of the hour: long enough to use it up. */
const TO_TURN = 25_000;
const TURN = Date.parse('2025-09-12T23:00:00+05:30');

const programs: Program[] = [];

afterEach(async () => {
  for (const program of programs.splice(0)) {
    program.kill('SIGKILL');
    await program.ended;
  }
});

test.each(backends)(
  'workers killed while the hour runs out never spend it twice (queue on %s)',
  async (backend) => {
    const ahead = TURN - TO_TURN - Date.now();
    const clock = { now: () => Date.now() + ahead };
    const sandbox = await startSandbox({
      clock,
      instrumentsPerExchange: 20,
      behaviour: { callsPerHour: CALLS_PER_HOUR, delayMs: 100 },
    });
    const pipeline = await openPipeline({
      databaseUrl: (await testDatabase()).url,
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
    const home = temporaryFolder();
    const startOne = () => {
      const program = startProgram(process.execPath, ['--import', 'tsx', WORKER, String(ahead)], {
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
        instruments: Array.from({ length: 100 }, (_, place) => `INSTRUMENT${place}`),
      }),
    );
    const running = [startOne(), startOne(), startOne()];
    for (const calls of [20, 45, 70, 95]) {
      await waitFor(() => sandbox.stats().requests >= calls, { what: `${calls} calls` });
      const killed = running.shift();
      killed?.kill('SIGKILL');
      running.push(startOne());
    }
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
    await sandbox.close();
  },
  120_000,
);
