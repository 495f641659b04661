import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadConfig, settings } from '../../src/core/config.ts';

const text = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
const lines = text.split('\n');
const SETTING = /^#([A-Z][A-Z_]*)=/;
/** The file as somebody would have it who uncommented every setting. */
const everything = parseEnv(text.replace(/^#(?=[A-Z][A-Z_]*=)/gm, '')) as Record<string, string>;

describe('.env.example', () => {
  test('names exactly the settings there are, each once', () => {
    const named = lines.flatMap((line) => SETTING.exec(line)?.[1] ?? []);
    expect(named.toSorted()).toEqual(Object.keys(settings).toSorted());
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
