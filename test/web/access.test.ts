import fastify from 'fastify';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { guard } from '../../src/web/access.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function dashboard() {
  const app = fastify();
  const settings = { EOD_HTTP_HOST: '0.0.0.0', EOD_WEB_PASSWORD: 'correct horse' };
  await guard(app, settings, pino({ level: 'silent' }));
  app.get('/', async () => 'the page');
  return async (password: string, remoteAddress = '10.0.0.1') => {
    const authorization = `Basic ${Buffer.from(`ravi:${password}`).toString('base64')}`;
    const { statusCode } = await app.inject({ url: '/', headers: { authorization }, remoteAddress });
    return statusCode;
  };
}

async function guess(ask: Awaited<ReturnType<typeof dashboard>>, times: number, address?: string) {
  for (let at = 0; at < times; at += 1) expect(await ask('wrong', address)).toBe(401);
}

// The minute begins with the first wrong password, not with a minute of the clock or of the process.
test.each([0, 59_990, 119_999])(
  'twenty wrong passwords within a minute lock an address out until the minute is over (from %d ms)',
  async (start) => {
    vi.advanceTimersByTime(start);
    const ask = await dashboard();
    await guess(ask, 10);
    vi.advanceTimersByTime(30_000);
    await guess(ask, 10);
    vi.advanceTimersByTime(29_999);
    expect([await ask('correct horse'), await ask('wrong')]).toEqual([429, 429]);
    expect(await ask('correct horse', '10.0.0.2')).toBe(200);
    vi.advanceTimersByTime(1);
    expect(await ask('correct horse')).toBe(200);
    await guess(ask, 20);
    expect(await ask('correct horse')).toBe(429);
  },
);

test('nineteen lock nobody out, and each address has a minute of its own', async () => {
  const ask = await dashboard();
  await guess(ask, 19);
  expect(await ask('correct horse')).toBe(200);
  vi.advanceTimersByTime(40_000);
  await guess(ask, 20, '10.0.0.2');
  vi.advanceTimersByTime(20_000);
  await guess(ask, 19);
  expect(await ask('correct horse')).toBe(200);
  expect(await ask('correct horse', '10.0.0.2')).toBe(429);
});

test('of passwords that are sent at once, none is let in after twenty wrong ones', async () => {
  const ask = await dashboard();
  const passwords = [...Array<string>(20).fill('wrong'), 'correct horse'];
  const statuses = await Promise.all(passwords.map((password) => ask(password)));
  expect(statuses).not.toContain(200);
});

test('the addresses of an IPv6 network count as one', async () => {
  const ask = await dashboard();
  for (let at = 1; at <= 20; at += 1) expect(await ask('wrong', `2001:db8:0:1::${at}`)).toBe(401);
  expect(await ask('correct horse', '2001:db8:0:1:ffff::1')).toBe(429);
  expect(await ask('correct horse', '2001:db8:0:2::1')).toBe(200);
});

test('if thousands of addresses guess at once, nobody is let in until their minute is over', async () => {
  const ask = await dashboard();
  for (let at = 0; at < 10_000; at += 1) expect(await ask('wrong', `10.1.${at >> 8}.${at & 255}`)).toBe(401);
  expect(await ask('correct horse')).toBe(429);
  vi.advanceTimersByTime(60_000);
  expect(await ask('correct horse')).toBe(200);
});

test('an address that is locked out keeps nobody else out', async () => {
  const ask = await dashboard();
  for (let at = 0; at < 10_100; at += 1) await ask('wrong');
  expect(await ask('correct horse')).toBe(429);
  expect(await ask('correct horse', '10.0.0.2')).toBe(200);
});
