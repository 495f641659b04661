import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type BackfillValues, backfillRequest } from '../../src/cli/parse-request.ts';
import { loadConfig } from '../../src/core/config.ts';
import { defaultOperations } from '../../src/operations/index.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const RANGE = { from: '2025-02-20', to: '2025-02-27' };
/** Late on 2025-03-05 in UTC: in India it is the 6th already. */
const clock = { now: () => Date.parse('2025-03-05T20:00:00Z') };

function request(names: string[], flags: BackfillValues, env: Record<string, string> = {}) {
  return backfillRequest(names, flags, { config: loadConfig(env), clock, cwd: '.' });
}

describe('what a backfill requests', () => {
  test('each operation of its own exchanges', () => {
    const { targets } = request(['getbhavcopycm', 'GETSERIESCHANGE', 'GetBhavCopyCM'], RANGE);
    expect(targets.map(({ operation, exchange }) => `${operation} ${exchange}`)).toEqual([
      'GetBhavCopyCM BSE',
      'GetBhavCopyCM NSE',
      'GetSeriesChange NSE',
    ]);
    expect(targets[0]).toMatchObject({ ...RANGE, refetchFrom: null });
  });

  test('--all: what EOD_OPERATIONS requests; EOD_EXCHANGES leaves out, --exchange overrides', () => {
    const names = (settings: Record<string, string>) => [
      ...new Set(request([], { ...RANGE, all: true }, settings).targets.map(({ operation }) => operation)),
    ];
    expect(names({}).toSorted()).toEqual(defaultOperations.map(({ name }) => name).toSorted());
    expect(names({ EOD_OPERATIONS: 'GetBhavCopyCM,GetBhavCopyFO' })).toEqual([
      'GetBhavCopyCM',
      'GetBhavCopyFO',
    ]);
    const bse = request([], { ...RANGE, all: true }, { EOD_EXCHANGES: 'BSE' });
    expect(new Set(bse.targets.map(({ exchange }) => exchange))).toEqual(new Set(['BSE']));
    const exact = request(['GetSeriesChange'], { ...RANGE, exchange: 'bse,nse' }, { EOD_EXCHANGES: 'NSE' });
    expect(exact.targets.map(({ exchange }) => exchange)).toEqual(['BSE', 'NSE']);
  });

  test('an operation that is named is requested, whether EOD_OPERATIONS requests it or not', () => {
    expect(request(['bhavcopy_fo'], RANGE, { EOD_OPERATIONS: 'GetSeriesChange' }).targets).toMatchObject([
      { operation: 'GetBhavCopyFO', exchange: 'BFO' },
    ]);
    expect(() => request(['GetBulkDeals'], RANGE)).toThrow('Bulk deals, bulk_deals is never requested');
  });

  test('--force requests again from the first day on', () => {
    expect(request(['GetBhavCopyCM'], { ...RANGE, force: true }).targets[0]?.refetchFrom).toBe(RANGE.from);
  });

  test('instruments from a list or a file', () => {
    const file = join(temporaryFolder(), 'list.txt');
    writeFileSync(file, '# large ones\nTCS\nM&M\n');
    const ask = (instruments: string) => request(['GetFinRatioEOD'], { ...RANGE, instruments }).instruments;
    expect(ask('TCS, M&M,TCS')).toEqual(['TCS', 'M&M']);
    expect(ask(`@${file}`)).toEqual(['TCS', 'M&M']);
  });

  test('request options by --param and by their own flags, spelled as the source spells them', () => {
    expect(request(['GetCircuitBreakers'], { ...RANGE, band: 'h' }).options).toEqual({ band: 'H' });
    const quarter = { ...RANGE, param: ['band=l'], period: 'qm', year: '2024' };
    expect(request(['GetCircuitBreakers', 'GetFinancialRatios'], quarter).options).toEqual({
      band: 'L',
      period: 'QM',
      year: '2024',
    });
    const flags = { ...RANGE, param: ['TYPE=quarter', 'year=2024'], natureOfReport: 'consolidated' };
    expect(request(['GetFinancialRatios'], flags).options).toEqual({
      type: 'Quarter',
      year: '2024',
      natureOfReport: 'Consolidated',
    });
  });

  test('an exchange that nobody knows is refused, unless a setting names it', () => {
    expect(() => request(['GetCircuitBreakers'], { ...RANGE, exchange: 'NYSE' })).toThrow(
      '--exchange: unknown exchange "NYSE"; did you mean NSE?; if the source has it, name it in EOD_OPERATION_EXCHANGES',
    );
    const exchangesOf = (flags: BackfillValues, env = {}) =>
      request(['GetCircuitBreakers'], { ...RANGE, ...flags }, env).targets.map(({ exchange }) => exchange);
    const env = { EOD_OPERATION_EXCHANGES: 'GetCircuitBreakers=NYSE' };
    expect(exchangesOf({ exchange: 'NYSE' }, env)).toEqual(['NYSE']);
  });

  test('values that are not known are sent as they are, and parameters that nobody declares too', () => {
    const circuits = request(['GetCircuitBreakers'], { ...RANGE, band: 'U', exchange: 'bse_idx,NSE' });
    expect(circuits.options).toEqual({ band: 'U' });
    expect(circuits.targets.map(({ exchange }) => exchange)).toEqual(['BSE_IDX', 'NSE']);
    const param = ['BAND=h', 'Segment=T+1', 'note=a=b'];
    expect(request(['GetCircuitBreakers'], { ...RANGE, param }).options).toEqual({
      band: 'H',
      'param:Segment': 'T+1',
      'param:note': 'a=b',
    });
    for (const [period, type] of [
      ['latest', 'EOD'],
      ['M9', 'Weekly'],
    ] as const) {
      const { options } = request(['GetFinancialRatios'], { ...RANGE, period, type });
      expect(options).toEqual({ period: period === 'latest' ? 'Latest' : period, type });
    }
  });

  test('EOD_OPERATION_EXCHANGES names the exchanges of single operations', () => {
    const env = {
      EOD_EXCHANGES: 'NSE',
      EOD_OPERATION_EXCHANGES: 'GetSeriesChange=BSE+nse,GetFinRatioEOD=BFO',
    };
    const { targets } = request([], { ...RANGE, all: true }, env);
    const of = (name: string) =>
      targets.filter(({ operation }) => operation === name).map(({ exchange }) => exchange);
    expect(of('GetSeriesChange')).toEqual(['BSE', 'NSE']);
    expect(of('GetFinRatioEOD')).toEqual(['BFO']);
    expect(of('GetBhavCopyCM')).toEqual(['NSE']);
    expect(() => loadConfig({ EOD_OPERATION_EXCHANGES: 'GetSeriesChange' })).toThrow(
      /NAME=EXCHANGE\+EXCHANGE/,
    );
  });

  test('today in EOD_TIMEZONE is not the future', () => {
    expect(request(['GetBhavCopyCM'], { from: '2025-03-06', to: '2025-03-06' }).targets[0]?.to).toBe(
      '2025-03-06',
    );
  });
});

const MISTAKES: [names: string[], flags: BackfillValues, says: RegExp][] = [
  [['GetBhavCopyCM'], { ...RANGE, all: true }, /not both/],
  [[], RANGE, /name operations .* or give --all/],
  [['GetBhavCopyCM'], { from: '2025-02-20' }, /--to missing/],
  [['GetBhavCopyCM'], {}, /--from and --to missing/],
  [['GetBhavCopyCM'], { ...RANGE, to: '2025-02-30' }, /--to: "2025-02-30" is not a day/],
  [['GetBhavCopyCM'], { ...RANGE, from: '20250220' }, /--from: "20250220" is not a day/],
  [['GetBhavCopyCM'], { ...RANGE, to: '2025-03-07' }, /2025-03-07 is in the future \(today is 2025-03-06/],
  [['GetBhavCopyCM'], { from: '2025-02-27', to: '2025-02-20' }, /reversed/],
  [['GetBhavCopyCM'], { ...RANGE, exchange: 'B S E' }, /unknown exchange "B S E"; did you mean BSE\?/],
  [['GetBhavCopyCM'], { ...RANGE, exchange: ',' }, /names no exchange/],
  [['GetBhavCopyCM'], { ...RANGE, instruments: '@nowhere.txt' }, /nowhere\.txt cannot be read/],
  [['GetBhavCopyCM'], { ...RANGE, instruments: ',' }, /names no instrument/],
  [['GetTotalTradeHighlights'], { ...RANGE, instruments: 'TCS' }, /cannot be requested by instrument/],
  [['GetCircuitBreakers'], { ...RANGE, param: ['AccessKey=x'] }, /AccessKey is set by EOD_ACCESS_KEY/],
  [['GetCircuitBreakers'], { ...RANGE, param: ['from=1'] }, /from is set by --from/],
  [['GetCircuitBreakers'], { ...RANGE, param: ['Exchange=NYSE'] }, /Exchange is set by --exchange/],
  [['GetCircuitBreakers'], { ...RANGE, param: ['band'] }, /"band" is not name=value/],
  [
    ['GetBhavCopyCM'],
    { ...RANGE, band: 'H' },
    /no chosen operation \(GetBhavCopyCM\) has a request option "band"/,
  ],
  [
    ['GetFinancialRatios'],
    { ...RANGE, natureOfReport: 'Alone' },
    /does not know "Alone".*Standalone, Consolidated\)/,
  ],
  [['GetFinancialRatios'], { ...RANGE, year: 'abc' }, /year: .* does not know "abc" .*a year such as 2024/],
  [['GetFinancialRatios'], { ...RANGE, param: ['year=20244'] }, /year: .* does not know "20244"/],
];

test.each(MISTAKES)('does not accept %j %j', (names, flags, says) => {
  expect(() => request(names, flags)).toThrow(says);
});

test('operations that EOD_EXCHANGES leaves without an exchange are refused, not silently left out', () => {
  const reason = 'by default, which EOD_EXCHANGES leaves out: name an exchange with --exchange';
  expect(() => request(['GetSeriesChange'], RANGE, { EOD_EXCHANGES: 'BSE' })).toThrow(
    `GetSeriesChange is requested for NSE ${reason}`,
  );
  expect(() => request(['GetIndexDetail', 'GetFinRatioEOD'], RANGE, { EOD_EXCHANGES: 'NSE' })).toThrow(
    `GetIndexDetail, GetFinRatioEOD are requested for BSE_IDX and BSE ${reason}`,
  );
});
