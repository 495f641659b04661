import { DrizzleQueryError } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import { PipelineError } from '../../src/core/errors.ts';
import { createLog, windowFacts } from '../../src/core/log.ts';

function captureLog() {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { lines, log: createLog(loadConfig({}), { write }) };
}

const away = new PipelineError('Postgres: connect ECONNREFUSED', { kind: 'database_unreachable' });
const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
const shutdown = Object.assign(new Error('terminating connection'), { code: '57P01', severity: 'FATAL' });
const terminated = new Error('Connection terminated unexpectedly');
const failed = (cause: Error) => new DrizzleQueryError('select secret from etl.windows', ['value'], cause);

describe('the log', () => {
  test('says once that Postgres is unreachable, without statement and stack', () => {
    const { lines, log } = captureLog();
    for (const err of [failed(shutdown), away, terminated, failed(terminated), away]) {
      log.warn({ err }, 'could not do it');
    }
    expect(lines).toHaveLength(1);
    expect(lines[0]?.err).toEqual({ type: 'Error', message: 'terminating connection', code: '57P01' });
    // Another server, and errors of other kinds, are lines of their own.
    log.warn({ err: refused }, 'queue connection');
    log.warn(
      { err: failed(Object.assign(new Error('no such column'), { code: '42703' })) },
      'could not do it',
    );
    log.warn({ err: new PipelineError('the source did not respond', { kind: 'timeout' }) }, 'x');
    log.warn({ err: new PipelineError('the source did not respond', { kind: 'timeout' }) }, 'x');
    expect(lines).toHaveLength(5);
    expect(JSON.stringify(lines)).not.toMatch(/select|stack/);
  });

  test('says once that Postgres cannot store, and separately that it is unreachable', () => {
    const { lines, log } = captureLog();
    const full = new PipelineError('Postgres: could not extend file (53100)', {
      kind: 'database_cannot_store',
    });
    const readOnly = Object.assign(new Error('cannot execute INSERT'), { code: '25006', severity: 'ERROR' });
    for (const err of [full, readOnly, failed(full), away, full]) log.warn({ err }, 'could not do it');
    expect(lines).toMatchObject([
      { err: { kind: 'database_cannot_store' } },
      { err: { kind: 'database_unreachable' } },
    ]);
  });

  test('is for people on a terminal, and has no secrets there either', () => {
    const written: string[] = [];
    const terminal = { isTTY: true, write: (text: string) => void written.push(text) };
    const config = loadConfig({ EOD_LOG_LEVEL: 'info', EOD_ACCESS_KEY: 'kiwi-0815' });
    const window = { id: 5, runId: 3, operation: 'GetBhavCopyCM', exchange: 'NSE', from: '2025-09-12' };
    const log = createLog(config, terminal);
    log.info(
      {
        ...windowFacts({ ...window, to: window.from }),
        attempt: 1,
        counts: { inserted: 7 },
        ms: { fetch: 12 },
      },
      'window loaded',
    );
    log.warn({ ...windowFacts({ ...window, to: '2025-09-15' }), err: refused }, 'window did not load');
    log.error({ of: ['kiwi-0815'] }, 'key\u001b[31m kiwi-0815');
    createLog({ ...config, EOD_LOG_FORMAT: 'json' }, terminal).info('json');
    createLog({ ...config, EOD_LOG_FORMAT: 'text' }, { write: terminal.write }).info('text');
    expect(written.map((line) => line.replace(/^\d\d:\d\d:\d\d/, 'TIME'))).toEqual([
      'TIME INFO  window loaded: GetBhavCopyCM NSE 2025-09-12 runId=3 windowId=5 attempt=1 counts.inserted=7 ms.fetch=12\n',
      'TIME WARN  window did not load: GetBhavCopyCM NSE 2025-09-12 to 2025-09-15: connect ECONNREFUSED 127.0.0.1:1 (ECONNREFUSED) runId=3 windowId=5\n',
      'TIME ERROR key\\u001b[31m [redacted] of=["[redacted]"]\n',
      expect.stringMatching(/^\{.*"msg":"json"\}\n$/),
      'TIME INFO  text\n',
    ]);
  });

  test('writes sentences for a command that a person runs, even if its output is piped; a format that is set prevails', () => {
    const written: string[] = [];
    const piped = { write: (text: string) => void written.push(text) };
    const config = loadConfig({ EOD_ACCESS_KEY: 'kiwi-0815' });
    createLog(config, piped, true).warn({ exchange: 'NSE', events: 3 }, 'withdrew events of kiwi-0815');
    createLog(config, piped, true).error({ err: refused }, 'no server');
    createLog({ ...config, EOD_LOG_FORMAT: 'json' }, piped, true).warn('json');
    expect(written).toEqual([
      'eod: warning: withdrew events of [redacted]: NSE (events=3)\n',
      'eod: error: no server: connect ECONNREFUSED 127.0.0.1:1 (ECONNREFUSED)\n',
      expect.stringMatching(/^\{.*"msg":"json"\}\n$/),
    ]);
  });

  test('shows the stack of a defect', () => {
    const { lines, log } = captureLog();
    log.error({ err: new TypeError('undefined is not a function') }, 'a defect');
    expect(lines[0]?.err).toMatchObject({ type: 'TypeError', stack: expect.stringContaining('log.test.ts') });
  });
});
