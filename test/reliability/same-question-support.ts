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

/** Five sessions, and one range of them. */
export const QUESTIONS = 6;

/** A sandbox behind a server that takes its time, and what it was asked: in all, and the most of one question at once. */
export async function slowSource() {
  const sandbox = await openSandbox({ clock: clockFrom(EVENING), instrumentsPerExchange: 5 });
  const underWay = new Map<string, number>();
  const asked = { url: '', requests: 0, atOnce: 0, mayAnswer: Promise.resolve() };
  asked.url = await startServer(async (request, response) => {
    const url = request.url ?? '';
    asked.requests += 1;
    const now = (underWay.get(url) ?? 0) + 1;
    underWay.set(url, now);
    asked.atOnce = Math.max(asked.atOnce, now);
    const answer = await fetch(new URL(url, sandbox.url));
    const body = await answer.text();
    await asked.mayAnswer;
    // Not waited for anything: calls take this long, so that two of one question would be under way at once.
    await sleep(300);
    underWay.set(url, (underWay.get(url) ?? 0) - 1);
    response.setHeader('content-type', answer.headers.get('content-type') ?? '');
    response.end(body);
  });
  return asked;
}
