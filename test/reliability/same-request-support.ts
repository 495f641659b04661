import { setTimeout as sleep } from 'node:timers/promises';
import { startServer } from '../support/http-server.ts';
import { openSandbox } from '../support/sandbox.ts';
import { clockFrom, EVENING } from './support.ts';

export const NIGHT = {
  from: '2025-09-08',
  to: '2025-09-12',
  operations: ['GetBhavCopyCM', 'GetSeriesChange'],
  exchanges: ['NSE'],
};

/** Five trading days, and one range of them. */
export const REQUESTS = 6;

/**
 * A sandbox behind a server that takes its time and counts requests: all, and the most of the same one under way at
 * once.
 */
export async function slowSource() {
  const sandbox = await openSandbox({ clock: clockFrom(EVENING), instrumentsPerExchange: 5 });
  const underWay = new Map<string, number>();
  const source = { url: '', requests: 0, atOnce: 0, mayRespond: Promise.resolve() };
  source.url = await startServer(async (request, response) => {
    const url = request.url ?? '';
    source.requests += 1;
    const now = (underWay.get(url) ?? 0) + 1;
    underWay.set(url, now);
    source.atOnce = Math.max(source.atOnce, now);
    const upstream = await fetch(new URL(url, sandbox.url));
    const body = await upstream.text();
    await source.mayRespond;
    // Calls take this long, so that two of the same request would be under way at once if nothing prevented it.
    await sleep(300);
    underWay.set(url, (underWay.get(url) ?? 0) - 1);
    response.setHeader('content-type', upstream.headers.get('content-type') ?? '');
    response.end(body);
  });
  return source;
}
