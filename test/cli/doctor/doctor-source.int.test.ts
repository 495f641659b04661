import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { loadConfig } from '../../../src/core/config.ts';
import { readResponse } from '../../../src/extract/index.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { requestedOperations } from '../../../src/operations/requested.ts';
import type { SandboxOptions } from '../../../src/sandbox/index.ts';
import { runCli, runJson } from '../../support/cli.ts';
import { startServer } from '../../support/http-server.ts';
import { query } from '../../support/query.ts';
import { notEnabled, openSandbox } from '../../support/sandbox.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { test } from '../support.ts';

const KEY = 'kiwi-4711';

interface Report {
  readonly isOk: boolean;
  readonly dateDialect: string;
  readonly operations: readonly {
    readonly operation: string;
    readonly exchange: string;
    readonly from: string;
    readonly to: string;
    readonly instruments: readonly string[];
    readonly state: 'ok' | 'failed' | 'skipped';
    readonly rows: number;
    readonly rejects: number;
    readonly tables: readonly string[];
    readonly unknownFields: readonly string[];
    readonly problem: string | null;
    readonly remedy: string | null;
    readonly file: string | null;
  }[];
}

const settingsFor = (databaseUrl: string, sourceUrl: string) => ({
  DATABASE_URL: databaseUrl,
  EOD_BASE_URL: sourceUrl,
  EOD_ACCESS_KEY: KEY,
});

async function examine(databaseUrl: string, sourceUrl: string, ...flags: string[]) {
  const options = { cwd: temporaryFolder(), env: settingsFor(databaseUrl, sourceUrl) };
  return runJson<Report>(['doctor', '--source', ...flags], options);
}

const sourceWith = (behaviour: SandboxOptions['behaviour'] = {}) =>
  openSandbox({ accessKey: KEY, behaviour });

/** The operations that nights request. */
const nightlyOperations = requestedOperations(loadConfig({}));

const tablesOf = ({ operations: reports }: Report, name: string) =>
  reports.find(({ operation }) => operation === name)?.tables;

test('each operation is requested once, counted, and its records are read in both of their forms', async ({
  url,
}) => {
  const facts = {
    table: 'financial_ratio_facts',
    records: () => [{ key: 'EPS', label: 'Earnings per share', value: '134.19' }],
  };
  const tables: (readonly string[] | undefined)[] = [];
  for (const dataSets of [{}, { GetFinancialRatios: facts }]) {
    const source = await openSandbox({ accessKey: KEY, dataSets });
    const { code, json } = await examine(url, source.url);
    expect({ code, isOk: json.isOk, dialect: json.dateDialect }).toEqual({
      code: 0,
      isOk: true,
      dialect: 'epoch',
    });
    expect(json.operations.map(({ operation }) => operation)).toEqual(
      nightlyOperations.map(({ name }) => name),
    );
    expect(json.operations.filter(({ state, rejects }) => state !== 'ok' || rejects > 0)).toEqual([]);
    expect(json.operations.find(({ operation }) => operation === 'GetBhavCopyCM')?.rows).toBeGreaterThan(100);
    expect(source.stats().requests).toBe(nightlyOperations.length);
    tables.push(tablesOf(json, 'GetFinancialRatios'));
  }
  expect(tables[0]).not.toEqual(tables[1]);
  const [{ calls = 0 } = {}] = await query<{ calls: number }>(
    url,
    'select sum(calls)::int as calls from etl.call_budget',
  );
  expect(calls).toBe(2 * nightlyOperations.length);
});

test('fields that no column reads are named', async ({ url }) => {
  const source = await sourceWith();
  const extended = await startServer(async (request, response) => {
    const body = await (await fetch(`${source.url}${request.url}`)).text();
    response.end(body.replaceAll(/\{(?="[A-Z])/g, '{"BrandNew": 1, '));
  });
  const { code, json } = await examine(url, extended);
  expect(code).toBe(0);
  expect(json.operations.filter(({ unknownFields }) => !unknownFields.includes('BrandNew'))).toEqual([]);
  const text = await runCli(['doctor', '--source'], {
    cwd: temporaryFolder(),
    env: settingsFor(url, extended),
  });
  expect(text.stdout).toContain('GetBhavCopyCM: no column reads BrandNew\n');
});

test('the days are requested in the other dialect if the source refuses their names', async ({ url }) => {
  const sandbox = await sourceWith();
  const source = {
    url: await startServer(async (request, response) => {
      const { searchParams } = new URL(`${sandbox.url}${request.url}`);
      if (searchParams.has('from')) return void response.end('Parameter from is unknown.');
      if (/^\d+$/.test(searchParams.get('date') ?? ''))
        return void response.end('Parameter date is invalid.');
      response.end(await (await fetch(`${sandbox.url}${request.url}`)).text());
    }),
  };
  const { code, json } = await examine(url, source.url);
  expect({ code, isOk: json.isOk, dialect: json.dateDialect }).toEqual({
    code: 1,
    isOk: false,
    dialect: 'iso-date',
  });
  expect(json.operations.filter(({ state }) => state === 'failed')).toEqual([]);
  const text = await runCli(['doctor', '--source'], {
    cwd: temporaryFolder(),
    env: settingsFor(url, source.url),
  });
  expect(text).toMatchObject({ code: 1, stdout: expect.stringMatching(/set\s+EOD_DATE_DIALECT=iso-date/) });
  const set = { ...settingsFor(url, source.url), EOD_DATE_DIALECT: 'iso-date' };
  expect(await runCli(['doctor', '--source'], { cwd: temporaryFolder(), env: set })).toMatchObject({
    code: 0,
  });
});

test('bodies are kept without the key, as the reader reads them', async ({ url }) => {
  const folder = join(temporaryFolder(), 'new', 'responses');
  const source = await sourceWith();
  const { json } = await examine(url, source.url, '--save', folder);
  expect(readdirSync(folder).length).toBe(json.operations.filter(({ file }) => file !== null).length);
  for (const { operation: name, exchange, from, to, instruments, rows, file } of json.operations) {
    const body = readFileSync(file ?? '');
    expect(body.includes(KEY)).toBe(false);
    const operation = operationNamed(name);
    const request = { exchange, from, to, instruments, params: {}, calledOn: to };
    const raw = { body, contentType: null, bytes: body.length };
    const read = readResponse(operation, request, raw, { accessKey: KEY, timeZone: 'Asia/Kolkata' });
    expect({ name, rows: read.fetched - read.rejects.length }).toEqual({ name, rows });
  }
});

test('a folder that cannot be written is a mistake, before any call', async ({ url }) => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, 'file'), '');
  const source = await sourceWith();
  const options = { cwd, env: settingsFor(url, source.url) };
  expect(await runCli(['doctor', '--source', '--save', 'file'], options)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--save: files cannot be written in'),
  });
  expect(source.stats().requests).toBe(0);
});

describe('says what is refused, and what to do', () => {
  test('an operation without rights: the others are requested', async ({ url }) => {
    const source = await sourceWith({ faults: notEnabled('GetSeriesChange') });
    const { code, json } = await examine(url, source.url);
    expect({ code, isOk: json.isOk }).toEqual({ code: 1, isOk: false });
    expect(json.operations.filter(({ state }) => state !== 'ok')).toMatchObject([
      {
        operation: 'GetSeriesChange',
        state: 'failed',
        problem: expect.stringMatching(/^operation_blocked: /),
        remedy: expect.stringContaining('ask the service for access'),
      },
    ]);
  });

  test('a refused key: no other call is made', async ({ url }) => {
    const source = await openSandbox({ accessKey: 'another' });
    const { code, json } = await examine(url, source.url);
    const [first, ...others] = json.operations;
    expect({ code, first }).toMatchObject({
      code: 1,
      first: {
        state: 'failed',
        problem: expect.stringMatching(/^credential: /),
        remedy: expect.stringContaining('EOD_ACCESS_KEY'),
      },
    });
    expect(others.filter(({ state }) => state !== 'skipped')).toEqual([]);
    expect(source.stats().requests).toBe(1);
  });

  test('a source that cannot be reached', async ({ url }) => {
    const options = { cwd: temporaryFolder(), env: settingsFor(url, 'http://127.0.0.1:1') };
    const { code, stdout } = await runCli(['doctor', '--source'], options);
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: expect.stringMatching(/network: .*check\s+EOD_BASE_URL/s),
    });
  });

  test('a response that is no data, and one in which all records are wrong', async ({ url }) => {
    const page = await startServer((_request, response) => response.end('<html><body>hello</body></html>'));
    const { code, json } = await examine(url, page);
    expect({ code, readable: json.operations.filter(({ state }) => state === 'ok') }).toEqual({
      code: 1,
      readable: [],
    });
    const wrong = await startServer((_request, response) =>
      response.end('[{"Symbol": "TCS", "ClosePrice": "cheap"}]'),
    );
    const bhavcopy = (await examine(url, wrong)).json.operations.find(
      ({ operation }) => operation === 'GetBhavCopyCM',
    );
    expect(bhavcopy).toMatchObject({
      state: 'failed',
      rejects: 1,
      problem: expect.stringContaining('1 of 1 record'),
    });
  });

  test('an hour without calls', async ({ url }) => {
    const source = await sourceWith();
    const env = { ...settingsFor(url, source.url), EOD_CALLS_PER_HOUR: '3' };
    const { code, json } = await runJson<Report>(['doctor', '--source'], { cwd: temporaryFolder(), env });
    expect(code).toBe(1);
    expect(json.operations.filter(({ state }) => state === 'ok').length).toBe(source.stats().requests);
    expect(source.stats().requests).toBeLessThanOrEqual(3);
    expect(json.operations.at(-1)).toMatchObject({
      state: 'skipped',
      problem: expect.stringContaining('used up'),
    });
  });
});

test('a day without data is no failure, in whatever words the source says so; what was saved is told only where something was', async ({
  url,
}) => {
  for (const [status, body] of [
    [200, 'Data unavailable.'],
    [404, 'Data unavailable.'],
    [200, '{"message":"Data unavailable."}'],
  ] as const) {
    const source = await startServer((_request, response) => {
      response.statusCode = status;
      response.end(body);
    });
    const { code, json } = await examine(url, source);
    expect({ body, code, isOk: json.isOk }).toEqual({ body, code: 0, isOk: true });
    expect(json.operations).toContainEqual(expect.objectContaining({ state: 'ok', rows: 0, problem: null }));
  }
  const save = async (sourceUrl: string) => {
    const options = { cwd: temporaryFolder(), env: settingsFor(url, sourceUrl) };
    return (await runCli(['doctor', '--source', '--save', 'responses'], options)).stdout;
  };
  expect(await save((await sourceWith()).url)).toContain('the bodies of the responses are in');
  expect(await save('http://127.0.0.1:1')).not.toContain('the bodies of the responses');
});
