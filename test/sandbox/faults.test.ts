import { describe, expect, test } from 'vitest';
import { type Fault, parseFault } from '../../src/sandbox/index.ts';
import { ask, range, sandbox, textOf } from './support.ts';

const DAY = '2025-09-12';
const dates = range(DAY);
const withFault = (...faults: Fault[]) => sandbox({ behaviour: { faults } });

describe('faults', () => {
  test('status and retry-after', async () => {
    const source = await withFault(
      { kind: 'status', value: '502', first: 1 },
      { kind: 'retry-after', value: '7', first: 2 },
    );
    const first = await ask(source, 'GetBhavCopyCM', dates);
    const second = await ask(source, 'GetBhavCopyCM', dates);
    expect([first.status, second.status, second.headers.get('retry-after')]).toEqual([502, 429, '7']);
    expect((await ask(source, 'GetBhavCopyCM', dates)).status).toBe(200);
    expect(source.stats().byFault).toEqual({ status: 1, 'retry-after': 1 });
  });

  test('html, nothing, half a JSON and a line, all with status 200', async () => {
    const good = await textOf(await sandbox(), 'GetBhavCopyCM', dates);
    const body = async (fault: Fault) => {
      const response = await ask(await withFault(fault), 'GetBhavCopyCM', dates);
      expect(response.status).toBe(200);
      return response.text();
    };
    expect(await body({ kind: 'html' })).toMatch(/^<!DOCTYPE html>/);
    expect(await body({ kind: 'empty-body' })).toBe('');
    expect(await body({ kind: 'half-json' })).toBe(good.slice(0, Math.ceil(good.length / 2)));
    expect(await body({ kind: 'diagnostic', value: 'Key Expired.' })).toBe('Key Expired.');
  });

  test('connections that break off, before and in the middle of the body', async () => {
    await expect(ask(await withFault({ kind: 'reset' }), 'GetBhavCopyCM', dates)).rejects.toThrow();
    const response = await ask(await withFault({ kind: 'truncate' }), 'GetBhavCopyCM', dates);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  test('no response at all, until the client gives up or the sandbox closes', async () => {
    const source = await withFault({ kind: 'hang' });
    await expect(ask(source, 'GetBhavCopyCM', dates, { signal: AbortSignal.timeout(150) })).rejects.toThrow();
    const waiting = expect(ask(source, 'GetBhavCopyCM', dates)).rejects.toThrow();
    await expect.poll(() => source.stats().requests).toBe(2);
    await source.close();
    await waiting;
  });

  test('a slow body comes whole in the end', async () => {
    const good = await textOf(await sandbox(), 'GetBhavCopyCM', dates);
    const started = performance.now();
    expect(await textOf(await withFault({ kind: 'slow', value: '200' }), 'GetBhavCopyCM', dates)).toBe(good);
    expect(performance.now() - started).toBeGreaterThan(190);
  });

  test('occur by count and by operation', async () => {
    const statuses = async (fault: Fault, count: number) => {
      const source = await withFault(fault);
      const statuses: number[] = [];
      for (let i = 0; i < count; i++) statuses.push((await ask(source, 'GetSeriesChange', dates)).status);
      return statuses;
    };
    expect(await statuses({ kind: 'status', every: 3 }, 7)).toEqual([200, 200, 503, 200, 200, 503, 200]);
    expect(await statuses({ kind: 'status', operation: 'GetBhavCopyCM' }, 2)).toEqual([200, 200]);
  });
});

test('occur only in requests for long ranges, and count only those', async () => {
  const source = await withFault({ kind: 'status', minDays: 3, first: 1 });
  const status = async (from: string, to: string) =>
    (await ask(source, 'GetSeriesChange', range(from, to))).status;
  expect(await status('2025-09-11', '2025-09-12')).toBe(200);
  expect(await status('2025-09-10', '2025-09-12')).toBe(503);
  expect(await status('2025-09-10', '2025-09-12')).toBe(200);
  expect(source.stats().byFault).toEqual({ status: 1 });
});

test('the notation of faults', () => {
  expect(parseFault('hang,min-days=8')).toEqual({ kind: 'hang', minDays: 8 });
  expect(parseFault('status=503,every=7')).toEqual({ kind: 'status', value: '503', every: 7 });
  expect(parseFault('diagnostic=Key Expired.,first=1,operation=getserieschange')).toEqual({
    kind: 'diagnostic',
    value: 'Key Expired.',
    first: 1,
    operation: 'GetSeriesChange',
  });
});

test.each([
  'crash',
  'status=abc',
  'status,every=0',
  'status,first=x',
  'reset,often=2',
  'diagnostic',
  'reset,operation=GetNothing',
])('a fault such as %s is refused', (text) =>
  expect(() => parseFault(text)).toThrow(expect.objectContaining({ kind: 'usage' })),
);

test('a taken port is a sentence, not a stack', async () => {
  const { port } = await sandbox();
  await expect(sandbox({ port })).rejects.toMatchObject({
    kind: 'usage',
    message: expect.stringContaining(String(port)),
  });
});
