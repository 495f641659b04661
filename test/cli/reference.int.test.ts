import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { fileSettings, SECRET_SETTINGS } from '../../src/core/environment.ts';
import { settings } from '../../src/core/settings.ts';
import { tablesFilledBy } from '../../src/declaration/operation.ts';
import { defaultOperations } from '../../src/operations/index.ts';
import { dataSets, operations } from '../../src/operations/registry.ts';
import { captureCli, runCli, runJson, unwrapped } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();

describe.concurrent('eod config', () => {
  const env = {
    EOD_ACCESS_KEY: 'kiwi-4711',
    DATABASE_URL: 'postgres://eod:hunter2@db.example:5433/market?sslpassword=hunter3',
    REDIS_URL: 'redis://:hunter4@cache.example',
  };

  test('shows every setting and no secret', async () => {
    const { code, stdout } = await runCli(['config'], { cwd, env });
    expect(code).toBe(0);
    for (const name of Object.keys(settings)) expect(stdout).toMatch(new RegExp(`^${name} `, 'm'));
    expect(stdout).toContain('db.example:5433/market');
    expect(stdout).toContain('cache.example');
    expect(stdout).not.toMatch(/kiwi|hunter/);
  });

  test('shows the same as JSON', async () => {
    const { json, stdout } = await runJson<Record<string, { value: unknown; from: string }>>(['config'], {
      cwd,
      env,
    });
    expect(Object.keys(json)).toEqual(Object.keys(settings));
    expect(json.EOD_ACCESS_KEY).toEqual({ value: 'set (redacted)', from: 'environment' });
    expect(stdout).not.toMatch(/kiwi|hunter/);
  });

  test('reads every secret from the file that NAME_FILE names, relative to the folder of .env', async () => {
    const folder = temporaryFolder();
    const schemes: Readonly<Record<string, string>> = { DATABASE_URL: 'postgres', REDIS_URL: 'redis' };
    const files = SECRET_SETTINGS.map((name) => {
      const isAddress = /URL|PROXY|WEBHOOK/.test(name);
      const value = isAddress ? `${schemes[name] ?? 'https'}://u:kiwi@host/kiwi` : 'a kiwi of 16 letters';
      writeFileSync(join(folder, name), `${value}\r\n`);
      return [fileSettings[name], name];
    });
    writeFileSync(join(folder, '.env'), `EOD_ACCESS_KEY_FILE=EOD_ACCESS_KEY\n`);
    const { EOD_ACCESS_KEY_FILE: _, ...env } = Object.fromEntries(files) as Record<string, string>;
    const { json, stdout } = await runJson<Record<string, { value: string; from: string }>>(['config'], {
      cwd: folder,
      env,
    });
    for (const name of SECRET_SETTINGS) {
      expect(json[name]).toEqual({ value: expect.stringMatching(/redacted/), from: fileSettings[name] });
    }
    expect(json.DATABASE_URL?.value).toBe('postgres://u:redacted@host/kiwi');
    expect(stdout.replace(json.DATABASE_URL?.value ?? '', '').replaceAll('@host/kiwi', '')).not.toContain(
      'kiwi',
    );
  });

  test('says where the data is, and why', async () => {
    type Shown = Record<string, { value: string; from: string; why?: string }>;
    const root = '/usr/lib/node_modules/eod-pipeline';
    const folder = temporaryFolder();
    const data = temporaryFolder();
    const surroundings = { cwd: folder, root, env: { XDG_DATA_HOME: data } };
    const shown = async (options: object) =>
      (await runJson<Shown>(['config'], { ...surroundings, ...options })).json.EOD_DATA_DIR;
    const value = join(data, 'eod-pipeline');
    const why = expect.stringMatching(/installed as a package/);
    expect(await shown({})).toEqual({ value, from: 'default', why });
    expect(unwrapped((await runCli(['config'], surroundings)).stdout).replaceAll(/\s+/g, ' ')).toContain(
      `EOD_DATA_DIR is ${value}, because eod is installed as a package`,
    );
    expect(await shown({ root: folder })).toEqual({
      value: '.eod',
      from: 'default',
      why: expect.stringMatching(/checkout/),
    });
    // What is set wins, and needs no reason.
    const env = { ...surroundings.env, EOD_DATA_DIR: 'mine' };
    expect(await shown({ env })).toEqual({ value: 'mine', from: 'environment' });
    // What an earlier version has left here is not lost from sight.
    mkdirSync(join(folder, '.eod', 'postgres'), { recursive: true });
    expect(await shown({})).toEqual({
      value: '.eod',
      from: 'default',
      why: expect.stringMatching(/database in \.eod/),
    });
    expect(await shown({ env })).toEqual({ value: 'mine', from: 'environment' });
  });

  test('knows proxies by their names in small letters too, without http://, and shows no password', async () => {
    const { json } = await runJson<Record<string, { value: unknown; from: string }>>(['config'], {
      cwd,
      env: {
        https_proxy: 'eod:kiwi@proxy.example:3128',
        HTTPS_PROXY: 'http://other',
        NO_PROXY: '.a, b:4532',
      },
    });
    expect(json).toMatchObject({
      HTTPS_PROXY: { value: 'http://eod:redacted@proxy.example:3128/', from: 'environment' },
      HTTP_PROXY: { value: null, from: 'default' },
      NO_PROXY: { value: ['.a', 'b:4532'], from: 'environment' },
    });
  });
});

describe.concurrent('eod operations', () => {
  test('lists all of them', async () => {
    const { stdout } = await runCli(['operations'], { cwd });
    for (const { name } of operations) expect(stdout).toContain(name);
  });

  test('describes one in any case: fields, units, table, key, sample', async () => {
    const { stdout } = await runCli(['operations', 'getbhavcopycm'], { cwd });
    expect(stdout).toContain('key: exchange, symbol, series, trade_date');
    expect(stdout).toMatch(/^turnover +numeric +rupees +ttlTrfVal\n +Total traded value\.$/m);
    expect(stdout).toContain('"Symbol": "M&M"');
  });

  test('as JSON carries every field of every table', async () => {
    const { json } = await runJson<{ name: string; tables: { fields: { column: string }[] }[] }[]>(
      ['operations'],
      { cwd },
    );
    const described = json.map(({ name, tables }) => ({
      name,
      columns: tables.map(({ fields }) => fields.map(({ column }) => column)),
    }));
    const declared = dataSets.map((dataSet) => ({
      name: dataSet.name,
      columns: tablesFilledBy(dataSet).map(({ fields }) => fields.map(({ column }) => column)),
    }));
    expect(described).toEqual(declared);
  });
});

describe.concurrent('eod schedules', () => {
  test('shows the next tick of every operation and exchange, which is in the future', async () => {
    const { json } = await runJson<{ operation: string; next: string; nextLocal: string }[]>(['schedules'], {
      cwd,
    });
    expect(new Set(json.map(({ operation }) => operation)).size).toBe(defaultOperations.length);
    for (const { next, nextLocal } of json) {
      expect(Date.parse(next)).toBeGreaterThan(Date.now());
      // India is 5:30 ahead, always.
      expect(new Date(Date.parse(next) + 19_800_000).toISOString().slice(0, 19)).toBe(
        nextLocal.replace(' ', 'T'),
      );
    }
  });
});

test('docs/configuration.md explains every setting, and no other', () => {
  const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
  const names = [...text.matchAll(/^- `([A-Z_]+)`/gm)].map((match) => match[1]);
  expect(names.toSorted()).toEqual(Object.keys(settings).toSorted());
});

test('docs/commands.md explains every command', () => {
  const text = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8');
  const commands = buildProgram(captureCli({ cwd }).cli).commands.map((command) => command.name());
  expect(commands.filter((name) => !new RegExp(`eod ${name}\\b`).test(text))).toEqual([]);
  expect(commands.length).toBeGreaterThan(20);
});
