import { expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import { runCli, unwrapped } from '../support/cli.ts';
import { openPipeline } from '../support/pipeline.ts';
import { notEnabled, openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { accountsOf, coverageRows, openSetup, tally, windowsOf } from './support.ts';

const WEEK = { from: '2025-09-08', to: '2025-09-11' };

test('an operation the key has no right to is requested once; the others finish', async () => {
  const setup = await openSetup({
    settings: { EOD_CONCURRENCY: '1' },
    behaviour: { faults: notEnabled('GetBhavCopyCM') },
  });
  const report = await setup.run({
    ...WEEK,
    operations: ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetSeriesChange'],
  });
  expect(report).toMatchObject({ state: 'completed', failures: [] });
  expect(report.warnings.map(({ operation, warning }) => [operation, warning])).toEqual([
    ['GetBhavCopyCM', 'the key may not use this operation: Function not enabled.'],
  ]);
  expect(setup.sandbox.stats().byOperation.GetBhavCopyCM).toBe(1);
  for (const operation of report.operations) {
    const { total, skipped, failed } = operation.windows;
    expect([operation.operation, skipped, failed]).toEqual([
      operation.operation,
      operation.operation === 'GetBhavCopyCM' ? total : 0,
      0,
    ]);
  }
  const blocked = (await coverageRows(setup)).filter(({ operation }) => operation === 'GetBhavCopyCM');
  expect(tally(blocked.map(({ state, diagnostic }) => `${state}: ${diagnostic}`))).toEqual({
    'blocked: the key may not use this operation: Function not enabled.': 8,
  });
  await accountsOf(setup, report);
});

test.each([
  [
    'operation',
    { faults: notEnabled('GetCircuitBreakers') },
    'missing right: Price bands hit, circuit_breakers NSE\n    the key may not use this operation: Function not enabled.',
    { EOD_OPERATIONS: 'default,-GetCircuitBreakers' },
  ],
  [
    'exchange',
    {
      faults: [
        {
          kind: 'diagnostic' as const,
          value: 'Data for requested exchange is disabled.',
          params: { exchange: 'NSE' },
        },
      ],
    },
    'missing right: NSE\n    the key may not use this exchange: Data for requested exchange is disabled.',
    { EOD_EXCHANGES: 'BSE' },
  ],
])(
  'what is missing because the key has no right to an %s is a warning, no gap, and one issue',
  async (_, behaviour, issue, silencer) => {
    const { environment, calendar } = await openPipeline({
      sandbox: { instrumentsPerExchange: 5, behaviour },
    });
    const eod = (...args: string[]) => runCli(args, { env: environment, cwd: temporaryFolder() });
    const [day = ''] = calendar.lastTradingDays('NSE', addDays(new Date().toISOString().slice(0, 10), -1), 1);
    const range = ['--from', day, '--to', day];
    const names = ['GetCircuitBreakers', 'GetBhavCopyCM'];
    const backfill = await eod('backfill', ...names, ...range);
    expect(backfill.code).toBe(0);
    expect(unwrapped(backfill.stdout)).toContain(`the key may not use this ${_}: `);
    const gaps = JSON.parse((await eod('gaps', ...range, '--json')).stdout);
    expect(JSON.stringify(gaps)).not.toContain('may not use');
    const refused = _ === 'operation' ? 'GetCircuitBreakers' : 'GetBhavCopyCM';
    expect((await eod('gaps', refused, '--exchange', 'NSE', ...range)).code).toBe(0);
    const listed = (await eod('issues', '--kind', 'missing_right')).stdout;
    const [[name, value] = []] = Object.entries(silencer);
    expect(listed).toContain(`${issue}\n    ${name}=${value}\n`);
    expect(listed).toContain('1 issue: 1 missing right');
    Object.assign(environment, silencer);
    await eod('migrate');
    expect((await eod('issues', '--kind', 'missing_right')).stdout).not.toContain('missing right');
  },
);

test('a day that was refused is missing as soon as the key may use the operation again', async () => {
  const { environment, calendar } = await openPipeline({
    sandbox: { instrumentsPerExchange: 5, behaviour: { faults: notEnabled('GetCircuitBreakers') } },
  });
  const allowing = await openSandbox({ instrumentsPerExchange: 5 });
  const allowed = { ...environment, EOD_BASE_URL: allowing.url };
  const cwd = temporaryFolder();
  const yesterday = addDays(new Date().toISOString().slice(0, 10), -1);
  const [first = '', refused = '', last = ''] = calendar.lastTradingDays('NSE', yesterday, 3);
  const load = async (env: typeof environment, day: string) => {
    const range = ['--exchange', 'NSE', '--from', day, '--to', day];
    expect((await runCli(['backfill', 'GetCircuitBreakers', ...range], { env, cwd })).code).toBe(0);
  };
  const range = ['GetCircuitBreakers', '--exchange', 'NSE', '--from', first, '--to', last];
  const listGaps = () => runCli(['gaps', ...range], { env: allowed, cwd });
  await load(allowed, first);
  await load(environment, refused);
  expect((await listGaps()).code).toBe(0);
  await load(allowed, last);
  const gaps = await listGaps();
  expect(gaps.code).toBe(1);
  expect(gaps.stdout).toContain(refused);
  expect((await runCli(['gaps', 'fill', ...range], { env: allowed, cwd })).code).toBe(0);
  expect((await listGaps()).code).toBe(0);
});

test('an instrument a trial key may not request is blocked alone', async () => {
  const value = 'Instrument is not allowed for Demo key.';
  const fault = { kind: 'diagnostic', value, params: { instrumentIdentifier: 'INFY' } } as const;
  const setup = await openSetup({ behaviour: { faults: [fault] } });
  const report = await setup.run({
    from: '2025-09-11',
    to: '2025-09-11',
    operations: ['GetFinRatioEOD'],
    exchanges: ['NSE'],
    instruments: ['TCS', 'INFY', 'M&M'],
  });
  expect(report.state).toBe('failed');
  const ends = (await windowsOf(setup, report.runId)).map(
    ({ instruments, state }) => `${instruments} ${state}`,
  );
  expect(tally(ends)).toEqual(
    Object.fromEntries(
      ['TCS loaded', 'INFY blocked', 'M&M loaded'].map((end) => [end, report.windows.total / 3]),
    ),
  );
  const infy = (await coverageRows(setup)).find(({ instrument }) => instrument === 'INFY');
  expect(infy).toMatchObject({ state: 'blocked', diagnostic: value });
  await accountsOf(setup, report);
});

test('a request without a filter is never sent', async () => {
  // The source requires a filter for this operation alone, and its dates always are one.
  const setup = await openSetup();
  const report = await setup.run({ ...WEEK, operations: ['GetSectoralClassification'] });
  expect(report.state).toBe('completed');
  expect(setup.sandbox.stats().byDiagnostic).toEqual({});
});
