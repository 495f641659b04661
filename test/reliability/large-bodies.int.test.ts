import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createSource } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { askedOf, SETTINGS, serve } from '../extract/support.ts';
import { openSetup, windowsOf } from './support.ts';

const MB = 1024 * 1024;
const SIZE = 400 * MB;
const PIECE = Buffer.alloc(MB);

/** Zeros, as fast as the client takes them; how many bytes left us is told to `sent`. */
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
    const call = source.fetch(operation, askedOf(operation));
    await expect(call).rejects.toMatchObject({ kind: 'too_large' });
    // What the sockets buffer is more than the cap, and a small part of the body.
    expect(bytes).toBeLessThan(60 * MB);
    expect((process.resourceUsage().maxRSS - before) * 1024).toBeLessThan(120 * MB);
    await source.close();
  });
});

test('in a run it is not asked for again as it was: the window fails, or is split if it can be', async () => {
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
  expect(windows.filter(({ error }) => error?.includes('the answer is too large'))).toHaveLength(4);
  expect(requests).toHaveLength(5);
});
