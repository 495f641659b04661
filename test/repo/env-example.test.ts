import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import { settings } from '../../src/core/settings.ts';

const text = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
const lines = text.split('\n');
const SETTING = /^#([A-Z][A-Z_]*)=/;
/** The file as somebody would have it who uncommented every setting. */
const everything = parseEnv(text.replace(/^#(?=[A-Z][A-Z_]*=)/gm, '')) as Record<string, string>;

describe('.env.example', () => {
  test('names exactly the settings there are, each once', () => {
    const names = lines.flatMap((line) => SETTING.exec(line)?.[1] ?? []);
    expect(names.toSorted()).toEqual(Object.keys(settings).toSorted());
  });

  test('sets nothing unless it is edited', () => {
    expect(parseEnv(text)).toEqual({});
  });

  test('explains each setting in the line above it', () => {
    const unexplained = lines.filter(
      (line, index) => SETTING.test(line) && !/^# \S/.test(lines[index - 1] ?? ''),
    );
    expect(unexplained).toEqual([]);
  });

  test('is valid when everything is uncommented', () => {
    expect(() => loadConfig(everything)).not.toThrow();
  });

  test('shows the real defaults', () => {
    const defaults = loadConfig({});
    const shown = loadConfig(everything);
    // A setting without a default, or with an empty one, shows an example instead.
    const isEmpty = (value: unknown) => value === undefined || JSON.stringify(value) === '{}';
    const kept = Object.entries(defaults).filter(([, value]) => !isEmpty(value));
    expect(shown).toMatchObject(Object.fromEntries(kept));
    expect(kept.length).toBeGreaterThan(20);
  });
});

describe('docs/configuration.schema.json', () => {
  const file = new URL('../../docs/configuration.schema.json', import.meta.url);
  const schema = JSON.parse(readFileSync(file, 'utf8'));
  const validate = new Ajv2020({ allErrors: true, allowUnionTypes: true, validateFormats: false }).compile(
    schema,
  );
  const problems = (env: Record<string, unknown>) => {
    validate(env);
    return (validate.errors ?? []).map(
      ({ instancePath, propertyName }) => propertyName ?? instancePath.slice(1),
    );
  };

  test('takes what the settings take, and numbers and flags as such', () => {
    expect(problems(everything)).toEqual([]);
    expect(problems({ EOD_CONCURRENCY: 8, EOD_TLS_VERIFY: false, PATH: '/usr/bin' })).toEqual([]);
  });

  test('refuses what is wrong, and names that are mistyped', () => {
    const wrong = {
      EOD_CONCURRENCY: 65,
      EOD_ATTEMPTS: 'five',
      EOD_FORMAT: 'Yaml',
      EOD_PUBLISHED_AT: '25:00',
      EOD_TLS_VERIFY: 'yes',
      EOD_KEEP_RUNS_DAYS: 6,
      EOD_CALL_PER_HOUR: '900',
    };
    expect([...new Set(problems(wrong))].filter((name) => name !== '').toSorted()).toEqual(
      Object.keys(wrong).toSorted(),
    );
  });
});
