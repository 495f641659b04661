import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { importFiles } from '../../src/jobs/import/import-files.ts';
import { startHttpServer } from '../../src/web/server.ts';
import { clockFrom } from '../reliability/support.ts';
import { closeAfterFile } from '../support/closing.ts';
import type { Pipeline } from '../support/pipeline.ts';
import { backfill, openPipeline, runToEnd } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

export const clock = clockFrom('2025-09-12T23:30:00+05:30');

export const DAY = '2025-09-11';

export const HOSTILE = '<img src=x onerror=alert(1)>"\'&<script>alert(2)</script>';

export const logged: string[] = [];

export async function serve(context: Pipeline, settings: Partial<Pipeline['config']> = {}): Promise<string> {
  const config = { ...context.config, ...settings };
  const log = { ...context.log, warn: (facts: object) => void logged.push(JSON.stringify(facts)) };
  const served = { ...context, config, log: log as unknown as Pipeline['log'] };
  const server = await startHttpServer(served, { roles: ['web'], stopping: new AbortController().signal });
  closeAfterFile(() => server.close());
  return server.url;
}

/** A run that failed, one that is complete, rejects, findings, a suspicious window, an event without a ratio. */
async function fill(): Promise<Pipeline> {
  const faults = [{ kind: 'status' as const, value: '404', operation: 'GetSeriesChange' }];
  const pipeline = await openPipeline({
    sandbox: { instrumentsPerExchange: 40, behaviour: { faults } },
    clock,
    settings: { EOD_INSTRUMENT_LIMIT: '3', EOD_ATTEMPTS: '1', EOD_CALLS_PER_HOUR: '5000' },
  });
  const report = await runToEnd(pipeline, backfill({ from: '2025-09-09', to: DAY }));
  expect(report.state).toBe('failed');
  await runToEnd(pipeline, backfill({ from: '2025-09-08', to: DAY, operations: ['GetBhavCopyCM'] }));
  const list = join(temporaryFolder(), 'mine.csv');
  writeFileSync(
    list,
    `exchange,symbol,ex_date,kind,ratio,note\nNSE,ABC,2024-02-05,demerger,,${HOSTILE.replaceAll('"', '')}\n`,
  );
  await importFiles(pipeline, { paths: [list], force: false });
  const { pool } = pipeline.db;
  await pool.query(
    `insert into etl.findings ("check", severity, operation, exchange, date, instrument, expected, found)
     values ('previous_close', 'error', 'GetBhavCopyCM', 'NSE', $1, $2, $2, $2)`,
    [DAY, HOSTILE],
  );
  await pool.query(
    `insert into etl.rejected_records (run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, record, problems, first_seen_at, last_seen_at)
     select run_id, id, operation, exchange, 0, from_date, to_date, 'f', '{}', $1, now(), now()
       from etl.windows where operation = 'GetBhavCopyCM' and exchange = 'NSE' and to_date = $2 limit 1`,
    [JSON.stringify([{ path: 'Name', message: HOSTILE }]), DAY],
  );
  await pool.query(
    `update etl.windows set suspicious = $1, unsettled = $1 where id = (
       select max(id) from etl.windows where operation = 'GetCircuitBreakers' and to_date = $2)`,
    [HOSTILE, DAY],
  );
  await pool.query(`update etl.windows set error = $1 where state = 'failed'`, [HOSTILE]);
  return pipeline;
}

/** The pages of the filled database. */
export async function openDashboard() {
  const pipeline = await fill();
  return { pipeline, url: await serve(pipeline) };
}

/** Every kind of page, of the filled database. */
export const PATHS = [
  '/',
  '/coverage',
  '/coverage/GetBhavCopyCM/NSE',
  '/coverage/GetBhavCopyCM/NSE?symbol=nosuch',
  '/coverage/GetCorporateActionsCategories/BSE',
  `/coverage/GetBhavCopyCM/NSE/${DAY}`,
  '/runs',
  '/runs/1',
  '/runs/2',
  '/issues',
  '/issues?kind=reject',
  '/issues?kind=finding',
  '/no-such-page',
];
