import { describe, expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { operations } from '../../src/operations/registry.ts';
import { responseFields } from '../../src/sandbox/response/record.ts';
import {
  ask,
  manualClock,
  midnight,
  plainRequest,
  range,
  records,
  sandbox,
  sharedSandbox,
  textOf,
  WEEK,
} from './support.ts';

const DAY = '2025-09-12';
const shared = sharedSandbox();
/** With a calendar of its own it shares nothing with the other. */
const another = sharedSandbox({ calendar: loadCalendar() });

/** Declared fields that live responses of an operation do not have. */
const NOT_SENT: Readonly<Record<string, readonly string[]>> = {
  GetCircuitBreakers: ['receivedat', 'savedat'],
  GetSeriesChange: ['receivedat', 'savedat'],
  GetCorporateActionsCategories: ['receivedat', 'savedat'],
  GetFinRatioEOD: ['receivedat', 'savedat', 'currentprice', 'stockprice'],
  GetFinancialRatios: ['receivedat', 'savedat', 'currentprice', 'stockprice'],
  GetFinRatioSnapshot: ['receivedat', 'savedat', 'eodcloseprice', 'stockprice'],
};

describe.each(operations.map((operation) => [operation.name, operation] as const))(
  '%s',
  (name, operation) => {
    test('carries every declared field of the sample shape', async () => {
      const source = shared();
      const [exchange = 'BSE'] = operation.exchanges;
      const sentRecords = await records(source, name, plainRequest(operation, exchange, DAY));
      expect(sentRecords.length).toBeGreaterThan(0);
      const sent = new Set(
        sentRecords.flatMap((record) => Object.keys(record).map((key) => key.toLowerCase())),
      );
      const [shape] = operation.shapes;
      // By any of the names of a field.
      const declared = responseFields(shape.table).map(({ source, orElse = [] }) =>
        [source, ...orElse].map((field) => field.toLowerCase()),
      );
      const absent = declared.filter((names) => !names.some((field) => sent.has(field)));
      expect(absent.map(([field]) => field).sort()).toEqual([...(NOT_SENT[name] ?? [])].sort());
      expect([...sent].filter((field) => !declared.flat().includes(field))).toEqual([]);
    });

    test('responds the same to the same request, byte for byte, from another sandbox too', async () => {
      const params = plainRequest(operation, 'NSE', DAY);
      expect(await textOf(shared(), name, params)).toBe(await textOf(another(), name, params));
    });
  },
);

describe('days', () => {
  test('has nothing for a Sunday, a holiday, or a day before 2015', async () => {
    const source = shared();
    for (const day of ['2025-09-07', '2025-08-15', '2014-12-31']) {
      expect(await records(source, 'GetBhavCopyCM', range(day)), day).toEqual([]);
      expect(await records(source, 'GetCircuitBreakers', { date: midnight(day) }), day).toEqual([]);
    }
  });

  test('has data from the first trading day of 2015 on', async () => {
    const source = shared();
    expect((await records(source, 'GetBhavCopyCM', range('2015-01-01'))).length).toBeGreaterThan(300);
  });

  test('publishes a day at 21:02 and not a second before', async () => {
    const clock = manualClock(Date.parse(`${DAY}T21:01:59+05:30`));
    const source = await sandbox({ clock, instrumentsPerExchange: 500 });
    expect(await records(source, 'GetBhavCopyCM', range(DAY))).toEqual([]);
    clock.moveTo(Date.parse(`${DAY}T21:02:00+05:30`));
    expect((await records(source, 'GetBhavCopyCM', range(DAY))).length).toBeGreaterThan(400);
  });

  test('lists a day only if its midnight lies in the range', async () => {
    const source = shared();
    const days = async (from: number, to: number) => {
      const rows = await records(source, 'GetTotalTradeHighlights', { from: String(from), to: String(to) });
      return [...new Set(rows.map((row) => row.Date))];
    };
    const start = Number(midnight('2025-09-09'));
    expect(await days(start, start)).toEqual(['09-09-2025']);
    expect(await days(start + 1, start + 86_399)).toEqual([]);
    expect(await days(start + 1, start + 86_400)).toEqual(['09-10-2025']);
    expect(await days(start, start + 86_399)).toEqual(['09-09-2025']);
  });

  test('sends records with audit times of about 21:02 on their day', async () => {
    const source = shared();
    const rows = await records(source, 'GetBhavCopyCM', range('2025-09-09'));
    for (const row of rows) {
      expect(row.ReceivedAt).toMatch(/^09-09-2025 21:0[12]:\d\d$/);
      expect(String(row.SavedAt) >= String(row.ReceivedAt)).toBe(true);
    }
  });
});

describe('instruments', () => {
  test('finds symbols with & and - however they are encoded', async () => {
    const { url } = shared();
    const { from, to } = range(DAY);
    const plain = `${url}/GetBhavCopyCM?accessKey=k&exchange=NSE&from=${from}&to=${to}&instrumentIdentifiers=`;
    for (const list of ['M%26M+BAJAJ-AUTO+GVT%26D', 'M%26M%20BAJAJ-AUTO%20GVT%26D']) {
      const body = (await (await fetch(plain + list)).json()) as { Value: { Symbol: string }[] };
      expect(body.Value.map((row) => row.Symbol).sort()).toEqual(['BAJAJ-AUTO', 'GVT&D', 'M&M']);
    }
  });

  test('knows TCS and RELIANCE by their real codes, and the usual series and groups', async () => {
    const source = shared();
    const bse = await records(source, 'GetBhavCopyCM', range(DAY));
    const bySymbol = (symbol: string) => bse.find((row) => row.Symbol === symbol);
    expect(bySymbol('TCS')).toMatchObject({ FinInstrmId: 532540, ISIN: 'INE467B01029' });
    expect(bySymbol('RELIANCE')).toMatchObject({ FinInstrmId: 500325, ISIN: 'INE002A01018' });
    const nse = await records(source, 'GetBhavCopyCM', { exchange: 'NSE', ...range(DAY) });
    expect(new Set(nse.map((row) => row.SctySrs))).toEqual(new Set(['EQ', 'BE', 'SM']));
    expect(new Set(bse.map((row) => row.SctySrs))).toEqual(new Set(['A', 'B', 'X', 'T', 'M']));
  });

  test('responds to an unknown symbol with nothing', async () => {
    const source = shared();
    const none = { instrumentIdentifier: 'NOSUCH' };
    expect(await textOf(source, 'GetFinRatioSnapshot', none)).toBe('{"Value":[]}');
    expect(await textOf(source, 'GetFinRatioEOD', { ...none, date: midnight(DAY) })).toBe('{"Value":[]}');
    expect(await textOf(source, 'GetSectoralClassification', { instrumentIdentifiers: 'NOSUCH' })).toBe(
      '{"Value":[]}',
    );
  });

  test('has as many as configured, each once a day', async () => {
    const source = await sandbox({ instrumentsPerExchange: 40 });
    const rows = await records(source, 'GetBhavCopyCM', { exchange: 'NSE', ...range(DAY) });
    expect(rows).toHaveLength(40);
    expect(new Set(rows.map((row) => `${row.Symbol}/${row.SctySrs}`)).size).toBe(rows.length);
    expect(new Set(rows.map((row) => row.FinInstrmId)).size).toBe(rows.length);
  });
});

describe('prices', () => {
  test('a close is the previous one of the next trading day, and stays within the band', async () => {
    const source = await sandbox({ instrumentsPerExchange: 300 });
    for (const exchange of ['BSE', 'NSE']) {
      const rows = await records(source, 'GetBhavCopyCM', { exchange, ...range('2025-08-11', DAY) });
      const closes = new Map<string, number>();
      for (const { Symbol: symbol, PrevClosePrice, ClosePrice, OpenPrice, HighPrice, LowPrice } of rows) {
        const [previous, close, open, high, low] = [
          PrevClosePrice,
          ClosePrice,
          OpenPrice,
          HighPrice,
          LowPrice,
        ].map(Number) as [number, number, number, number, number];
        expect(previous).toBe(closes.get(String(symbol)) ?? previous);
        closes.set(String(symbol), close);
        for (const price of [open, close]) {
          expect(price).toBeLessThanOrEqual(high);
          expect(price).toBeGreaterThanOrEqual(low);
        }
        expect(Math.max(high / previous - 1, 1 - low / previous)).toBeLessThan(0.2001);
      }
      expect(rows.length).toBeGreaterThan(300 * 20);
    }
  });

  test('a share that changes its series has the new one in the trade file of the day', async () => {
    const source = await sandbox({ instrumentsPerExchange: 120 });
    const changes = await records(source, 'GetSeriesChange', {
      exchange: 'NSE',
      ...range(WEEK[0] as string, DAY),
    });
    const today = changes.filter(({ ChangeDate }) => ChangeDate === '09-12-2025');
    expect(today.length).toBeGreaterThan(0);
    const series = async (day: string) => {
      const rows = await records(source, 'GetBhavCopyCM', { exchange: 'NSE', ...range(day) });
      return new Map(rows.map(({ Symbol: symbol, SctySrs }) => [symbol, SctySrs]));
    };
    const [before, after] = [await series('2025-09-11'), await series(DAY)];
    for (const { ScripId, PrevSeries, ToSeries } of today) {
      expect([before.get(ScripId), after.get(ScripId)]).toEqual([PrevSeries, ToSeries]);
    }
    const others = [...after].filter(([symbol]) => today.every(({ ScripId }) => ScripId !== symbol));
    expect(others.filter(([symbol, value]) => before.get(symbol) !== value)).toEqual([]);
  });
});

describe('the server', () => {
  test('responds with 404 for unknown paths and 405 for other methods', async () => {
    const source = shared();
    expect((await ask(source, 'GetNothing', {})).status).toBe(404);
    expect((await ask(source, 'GetBhavCopyCM/x', {})).status).toBe(404);
    expect((await ask(source, 'GetBhavCopyCM', range(DAY), { method: 'POST' })).status).toBe(405);
  });

  test('counts requests, and keeps keys out of what it shows', async () => {
    const source = await sandbox();
    await Promise.all([textOf(source, 'GetSeriesChange', range(DAY)), textOf(source, 'GetSeriesChange', {})]);
    const stats = (await (await fetch(`${source.url}/_sandbox/stats`)).json()) as object;
    expect(stats).toEqual({ ...source.stats() });
    expect(source.stats()).toMatchObject({
      requests: 2,
      byOperation: { GetSeriesChange: 2 },
      byHour: { '2025-09-12T22': 2 },
      byDiagnostic: { 'Parameter from is missing.': 1 },
    });
    const requestLog = await (await fetch(`${source.url}/_sandbox/requests`)).text();
    expect(JSON.parse(requestLog)).toHaveLength(2);
    expect(requestLog).not.toContain('any-key');
  });
});
