import { describe, expect, test } from 'vitest';
import { dayAt } from '../../src/core/days.ts';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { startServer } from '../support/http-server.ts';
import { ended } from '../support/pipeline.ts';
import { openSandbox, rangeLimit } from '../support/sandbox.ts';
import { calendar, expectWhole, HIGHLIGHTS, MONTH, span } from './split-support.ts';
import {
  accountsOf,
  clockFrom,
  coverageRows,
  EVENING,
  openSetup,
  type Setup,
  type SetupOptions,
  start,
  tally,
  windowsOf,
} from './support.ts';

/** What the same run loads from a source without faults. */
async function undisturbed(options: SetupOptions = {}): Promise<{ rows: string; coverage: unknown }> {
  const setup = await openSetup(options);
  await setup.run(HIGHLIGHTS);
  return { rows: await rowsOf(setup), coverage: await coverageRows(setup) };
}

async function rowsOf({ db }: Setup): Promise<string> {
  const result = await db.pool.query<{ rows: string }>(
    `select string_agg(concat_ws('|', exchange, trade_date, trade_highlight, scrip_count, trade_count, shares_volume_crore), e'\\n'
       order by exchange, trade_date, trade_highlight) as rows from market.total_trade_highlights`,
  );
  return result.rows[0]?.rows ?? '';
}

/**
 * A sandbox behind a server that serves some ranges only, and refuses the others with this line, whatever length it
 * names. `refused` are the first days of those.
 */
async function sourceThat(serves: (from: string, to: string) => boolean, line: string) {
  const sandbox = await openSandbox({ clock: clockFrom(EVENING), instrumentsPerExchange: 5 });
  const refused: string[] = [];
  const source = { url: '', refused, serves };
  source.url = await startServer(async (request, response) => {
    const url = new URL(request.url ?? '', sandbox.url);
    const [from = '', to = ''] = ['from', 'to'].map((name) =>
      dayAt(Number(url.searchParams.get(name)), 'Asia/Kolkata'),
    );
    if (!source.serves(from, to)) {
      refused.push(from);
      response.end(line);
      return;
    }
    const upstream = await fetch(url);
    response.setHeader('content-type', upstream.headers.get('content-type') ?? '');
    response.end(await upstream.text());
  });
  return source;
}

const LINES = ['Date is out of allowed range.', 'Date is out of allowed range of 30 days.'];

const CASES: [operation: string, calls: string][][] = [
  [
    ['GetTotalTradeHighlights', '1'],
    ['GetBhavCopyCM', '4'],
  ],
  [
    ['GetTotalTradeHighlights', '4'],
    ['GetTop5GainersLosers', '4'],
  ],
];

describe.each(LINES)('days too far back, refused with "%s"', (line) => {
  const REACH = '2025-07-30';
  const request = { from: '2025-06-30', to: '2025-08-22', exchanges: ['BSE'] };
  const tradingDays = () => calendar.tradingDays('BSE', request.from, request.to);
  const expectAllInReach = async (setup: Setup) => {
    const coverage = (await coverageRows(setup)).filter(({ state }) => state !== 'holiday');
    expect(coverage.map(({ day }) => day)).toEqual(tradingDays());
    for (const { day, state, diagnostic } of coverage) {
      expect([day, state, diagnostic]).toEqual(day >= REACH ? [day, 'loaded', null] : [day, 'blocked', line]);
    }
  };

  test.each(CASES[LINES.indexOf(line)] ?? [])(
    '%s, %s calls at a time: all days in reach are loaded, those before it cost few calls',
    async (name, calls) => {
      const source = await sourceThat((from) => from >= REACH, line);
      const settings = { EOD_CONCURRENCY: calls };
      const setup = await openSetup({ sourceUrl: source.url, settings });
      const report = await setup.run({ ...request, operations: [name] });
      expect(report).toMatchObject({ state: 'failed', windows: { failed: 0 } });
      await expectAllInReach(setup);
      // Each worker may request a window before the first day is refused.
      const maxCalls = Number(calls) * Math.ceil(Math.log2(span(request)));
      expect(source.refused.length).toBeLessThanOrEqual(maxCalls);

      const again = { ...request, operations: [name], to: '2025-07-29' };
      const next = await ended(setup, await start(setup, again));
      expect(next).toMatchObject({ state: 'failed', windows: { failed: 0, loaded: 0 } });
      expect(next.requests).toBeLessThanOrEqual(maxCalls);
    },
  );

  test('a range that is out of reach as a whole costs few calls, on an empty database too', async () => {
    const source = await sourceThat((from) => from >= REACH, line);
    const setup = await openSetup({ sourceUrl: source.url });
    const highlights = { ...request, to: '2025-07-25', operations: ['GetTotalTradeHighlights'] };
    const report = await setup.run(highlights);
    expect(report).toMatchObject({ state: 'failed', windows: { failed: 0, loaded: 0 } });
    expect(source.refused.length).toBeLessThanOrEqual(4 * Math.ceil(Math.log2(26)));
  });
});

test('a source that reaches further back by now is noticed by the next run', async () => {
  const source = await sourceThat((from) => from >= '2025-09-02', LINES[0] as string);
  const setup = await openSetup({ sourceUrl: source.url });
  expect(await setup.run(HIGHLIGHTS)).toMatchObject({ state: 'failed' });
  source.serves = () => true;
  const next = await ended(setup, await start(setup, HIGHLIGHTS));
  expect(next).toMatchObject({ state: 'completed' });
});

test('the day is found if a source has one past day only, as with a trial key', async () => {
  const only = '2025-08-28';
  const source = await sourceThat((from, to) => from === only && to === only, LINES[0] as string);
  const setup = await openSetup({ sourceUrl: source.url });
  await setup.run({ ...HIGHLIGHTS, exchanges: ['BSE'] });
  const loaded = (await coverageRows(setup)).filter(({ state }) => state === 'loaded');
  expect(loaded.map(({ day }) => day)).toEqual([only]);
});

test('a limit that is not named is found by halves, each time', async () => {
  const setup = await openSetup({
    behaviour: { faults: [{ kind: 'diagnostic', value: 'Date is out of allowed range.', minDays: 8 }] },
  });
  const first = await setup.run(HIGHLIGHTS);
  const again = await ended(setup, await start(setup, { ...HIGHLIGHTS, force: true }));
  // 26 days and both halves of 13 are refused; the halves of those are not.
  for (const report of [first, again]) {
    expect(report).toMatchObject({ state: 'completed', requests: 3 + 4 });
    expect(Math.max(...(await windowsOf(setup, report.runId)).map(span))).toBe(26);
  }
});

test('a limit of one day costs a call for each trading day, besides the one that was refused', async () => {
  const daily = await openSetup({ behaviour: { faults: [rangeLimit('GetTotalTradeHighlights', 1)] } });
  const report = await daily.run(HIGHLIGHTS);
  expect(report).toMatchObject({ state: 'completed', requests: 1 + 18 });
  expect(daily.sandbox.stats().byDiagnostic).toEqual({ 'Date is out of allowed range of 1 day.': 1 });
  expect(Object.keys(tally((await coverageRows(daily)).map(({ day }) => day)))).toHaveLength(18 + 2);
  await accountsOf(daily, report);
});

test('a refusal that names no limit is halved; days beyond the reach end as blocked, the others load', async () => {
  const setup = await openSetup({ behaviour: { historyDays: 20 } });
  const report = await setup.run(HIGHLIGHTS);
  expect(report.state).toBe('failed');
  const coverage = await coverageRows(setup);
  const tradingDays = coverage.filter(({ state }) => state !== 'holiday');
  for (const { day, state, diagnostic } of tradingDays) {
    const reached = day >= '2025-08-23';
    expect([day, state, diagnostic]).toEqual([
      day,
      reached ? 'loaded' : 'blocked',
      reached ? null : 'Date is out of allowed range.',
    ]);
  }
  await accountsOf(setup, report);
});

const FAULTS: [string, Behaviour['faults'][number], Record<string, string>, number][] = [
  ['no response in time', { kind: 'hang', minDays: 8 }, { EOD_TIMEOUT_MS: '400' }, 7],
  ['half a JSON', { kind: 'half-json', minDays: 4 }, {}, 3],
  ['a connection that breaks in the body', { kind: 'truncate', minDays: 2 }, {}, 1],
];

describe('a long range that does not come whole is split in half, as often as it takes', () => {
  test.each(FAULTS)('%s', async (_, fault, settings, longest) => {
    const plain = await undisturbed();
    const setup = await openSetup({ settings, behaviour: { faults: [fault] } });
    const report = await setup.run(HIGHLIGHTS);
    expect(report.state).toBe('completed');
    const windows = await windowsOf(setup, report.runId);
    const [whole, ...rest] = windows;
    expect(whole).toMatchObject({ state: 'split', ...MONTH });
    const pieces = rest.filter(({ state }) => state !== 'split');
    expectWhole(pieces, MONTH);
    expect(Math.max(...pieces.map(span))).toBeLessThanOrEqual(longest);
    // Every piece is about half of its parent, and each window was requested once.
    for (const piece of rest) {
      const parent = windows.find(({ id }) => id === piece.parent);
      expect(span(piece)).toBeLessThanOrEqual(Math.ceil(span(parent ?? piece) / 2));
    }
    expect(new Set(windows.map(({ requests }) => requests))).toEqual(new Set([1]));
    expect(await rowsOf(setup)).toBe(plain.rows);
    expect(await coverageRows(setup)).toEqual(plain.coverage);
    await accountsOf(setup, report);
  });

  test('a response larger than the cap', async () => {
    const setup = await openSetup({ instruments: 200, settings: { EOD_MAX_RESPONSE_MB: '1' } });
    const report = await setup.run({ ...MONTH, operations: ['GetConsolidatedPledge'], exchanges: ['BSE'] });
    expect(report.state).toBe('completed');
    expect((await windowsOf(setup, report.runId))[0]).toMatchObject({ state: 'split', requests: 1 });
    await accountsOf(setup, report);
  });
});

test('an error page or nothing at all is requested again as it was: less would not bring more', async () => {
  const setup = await openSetup({
    settings: { EOD_CONCURRENCY: '1' },
    behaviour: {
      faults: [
        { kind: 'html', first: 1 },
        { kind: 'empty-body', first: 2 },
      ],
    },
  });
  const report = await setup.run(HIGHLIGHTS);
  expect(report).toMatchObject({ state: 'completed', requests: 3, windows: { total: 1, loaded: 1 } });
});
