import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createSource } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { requestedOf, SETTINGS, serve } from '../extract/support.ts';
import { testDatabase } from '../support/database.ts';
import { type EodOptions, runEod } from '../support/eod.ts';
import { startServer } from '../support/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { openSetup, windowsOf } from './support.ts';

const MB = 1024 * 1024;
const SIZE = 400 * MB;
const PIECE = Buffer.alloc(MB);

/** Zeros, as fast as the client takes them; how many bytes left us is reported to `sent`. */
function pour(response: ServerResponse, sent: (bytes: number) => void): void {
  let left = SIZE;
  const more = () => {
    while (left > 0 && !response.destroyed) {
      left -= PIECE.length;
      sent(PIECE.length);
      if (!response.write(PIECE)) {
        response.once('drain', more);
        return;
      }
    }
    response.end();
  };
  more();
}

/** 400 MB of zeros in some 400 KB. */
const bomb = Buffer.concat(Array.from({ length: 25 }, () => gzipSync(Buffer.alloc(16 * MB))));

const BODIES: [string, (response: ServerResponse, sent: (bytes: number) => void) => void][] = [
  [
    '400 MB that say so',
    (response, sent) => {
      response.writeHead(200, { 'content-length': SIZE });
      pour(response, sent);
    },
  ],
  ['400 MB that do not', (response, sent) => pour(response, sent)],
  [
    'a gzip bomb',
    (response, sent) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': bomb.length });
      sent(bomb.length);
      response.end(bomb);
    },
  ],
];

describe.each(BODIES)('%s', (_, write) => {
  test('is given up at the cap, in bounded memory', async () => {
    let bytes = 0;
    const { baseUrl } = await serve((_request, response) =>
      write(response, (count) => {
        bytes += count;
      }),
    );
    const source = createSource({ ...SETTINGS, baseUrl, maxResponseBytes: 8 * MB, timeoutMs: 20_000 });
    const operation = operationNamed('GetBhavCopyCM');
    const before = process.resourceUsage().maxRSS;
    const call = source.fetch(operation, requestedOf(operation));
    await expect(call).rejects.toMatchObject({ kind: 'too_large' });
    // What the sockets buffer is more than the cap, and a small part of the body.
    expect(bytes).toBeLessThan(60 * MB);
    expect((process.resourceUsage().maxRSS - before) * 1024).toBeLessThan(120 * MB);
    await source.close();
  });
});

test('in a run a body over the cap is not requested again as it was: the window fails, or is split if it can be', async () => {
  const { baseUrl, requests } = await serve((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end(bomb);
  });
  const setup = await openSetup({
    sourceUrl: baseUrl,
    settings: { EOD_MAX_RESPONSE_MB: '1', EOD_CONCURRENCY: '1' },
  });
  const report = await setup.run({
    operations: ['GetBhavCopyCM', 'GetTotalTradeHighlights'],
    exchanges: ['BSE'],
    from: '2025-09-10',
    to: '2025-09-11',
  });
  expect(report).toMatchObject({ state: 'failed', windows: { total: 4, failed: 4 } });
  const windows = await windowsOf(setup, report.runId);
  expect(windows.filter(({ state }) => state === 'split')).toHaveLength(1);
  expect(windows.filter(({ error }) => error?.includes('the response is too large'))).toHaveLength(4);
  expect(requests).toHaveLength(5);
});

/** Runs a command with a database of its own, in a process whose heap is far smaller than the default. */
async function runInSmallHeap(args: readonly string[], { cwd = temporaryFolder(), env }: EodOptions) {
  const { url } = await testDatabase();
  return runEod(args, { cwd, env: { ...env, DATABASE_URL: url, NODE_OPTIONS: '--max-old-space-size=512' } });
}

test('a CSV that would take more than the heap fails alone; the process lives, and the window beside it loads', async () => {
  const operation = operationNamed('GetBhavCopyCM');
  const [sent] = (operation.sample.response as { Value: Record<string, unknown>[] }).Value;
  const record = { ...sent, Symbol: 'TCS', Src: 'BSE', FinInstrmNm: 'TATA CONSULTANCY' };
  const row = `${Object.values(record).join(',')}\n`;
  const header = Buffer.from(`${Object.keys(record).join(',')}\n`);
  // Without the last line end, so that it has to be parsed as a whole.
  const large = Buffer.concat([header, Buffer.alloc(60_000_000, row).subarray(0, -1)]);
  const plain = Buffer.concat([header, Buffer.from(row)]);
  const urls: string[] = [];
  const responders: (() => void)[] = [];
  const baseUrl = await startServer((request, response) => {
    const url = request.url ?? '';
    urls.push(url);
    const body = /BhavCopy/.test(url) ? (/exchange=NSE/i.test(url) ? large : plain) : '[]';
    responders.push(() => response.end(body));
    // Until the key is known to be good, one window is requested alone; the two after it get their responses together.
    if (urls.length !== 2) for (const respond of responders.splice(0)) respond();
  });
  const range = ['--from', '2025-08-29', '--to', '2025-08-29'];
  const { code, signal, stdout, stderr } = await runInSmallHeap(
    ['backfill', 'GetTotalTradeHighlights', 'GetBhavCopyCM', ...range, '--json'],
    { env: { EOD_BASE_URL: baseUrl, EOD_ACCESS_KEY: 'a key', EOD_CONCURRENCY: '2', EOD_FORMAT: 'Csv' } },
  );
  expect({ code, signal }, stderr).toEqual({ code: 1, signal: null });
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({ state: 'failed', windows: { total: 3, loaded: 1, empty: 1, failed: 1 } });
  expect(stdout).toMatch(/the response is too large: 58 MB, .* NODE_OPTIONS=--max-old-space-size=\d+/);
  expect(urls).toHaveLength(3);
});

test('a file that would take more than the heap fails alone, and the import goes on with the next', async () => {
  const fixture = readFileSync(
    new URL('../fixtures/bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv', import.meta.url),
    'latin1',
  );
  const [header, row = ''] = fixture.split(/\r?\n/);
  const cwd = temporaryFolder();
  // Quotes, so that it has to be parsed as a whole.
  const quoted = `${row.replace(/^[^,]*/, '"$&"')}\n`;
  writeFileSync(
    join(cwd, 'a.csv'),
    Buffer.concat([Buffer.from(`${header}\n`), Buffer.alloc(60_000_000, quoted)]),
  );
  writeFileSync(join(cwd, 'b.csv'), fixture);
  const { code, stdout, stderr } = await runInSmallHeap(['import', '--json', 'a.csv', 'b.csv'], { cwd });
  expect(code, stderr).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    files: [
      {
        file: 'a.csv',
        state: 'failed',
        error: expect.stringMatching(/^is too large: 58 MB, .*NODE_OPTIONS=/),
      },
      { file: 'b.csv', state: 'loaded', error: null },
    ],
  });
});

test('a response of 64 MB, the most that is read, is loaded in a process of little more than 400 MB', async () => {
  const operation = operationNamed('GetBhavCopyFO');
  const [sent = {}] = (operation.sample.response as { Value: Record<string, unknown>[] }).Value;
  const lines = [`${Object.keys(sent).join(',')}\n`];
  for (let [at, bytes] = [0, 0]; bytes < 63 * MB; at++) {
    const terms = {
      Identifier: `IO_SYMBOL${at}_25MAR2025_CE_${at % 500}`,
      Symbol: `SYMBOL${at}`,
      ClosePrice: at,
    };
    const line = `${Object.values({ ...sent, ...terms }).join(',')}\n`;
    lines.push(line);
    bytes += line.length;
  }
  const body = lines.join('');
  const baseUrl = await startServer((_, response) => response.end(body));
  const cwd = temporaryFolder();
  const note = join(cwd, 'note.mjs');
  writeFileSync(
    note,
    `process.on('exit', () => console.error('peak', process.resourceUsage().maxRSS / 1024, 'MB'));`,
  );
  const { url } = await testDatabase();
  const { code, stderr } = await runEod(
    ['backfill', operation.name, '--exchange', 'BFO', '--from', '2025-03-12', '--to', '2025-03-12'],
    {
      cwd,
      env: {
        DATABASE_URL: url,
        EOD_BASE_URL: baseUrl,
        EOD_ACCESS_KEY: 'a key',
        EOD_FORMAT: 'Csv',
        EOD_OPERATIONS: operation.name,
        NODE_OPTIONS: `--import ${note}`,
      },
    },
  );
  expect(code, stderr).toBe(0);
  expect(Number(/peak ([\d.]+) MB/.exec(stderr)?.[1])).toBeLessThan(440);
});
