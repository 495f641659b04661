import { describe, expect, test } from 'vitest';
import { parseMoment } from '../../src/cli/options.ts';
import { loadConfig } from '../../src/core/config.ts';

const read = (text: string, env: Record<string, string> = {}) =>
  parseMoment('--since', text, { config: loadConfig(env) });

describe('a moment on the command line', () => {
  test('a day is its first second in EOD_TIMEZONE', () => {
    expect(read('2025-02-27')).toBe('2025-02-26T18:30:00.000Z');
    expect(read('2025-02-27', { EOD_TIMEZONE: 'UTC' })).toBe('2025-02-27T00:00:00.000Z');
  });

  test.each([
    '2025-02-27T21:00+05:30',
    '2025-02-27 21:00:00+05:30',
    '2025-02-27T15:30:00Z',
    '2025-02-27T15:30:00.123456Z',
    '2025-02-27T21:00:00+0530',
  ])('%s is kept as it is', (text) => {
    expect(read(text)).toBe(text);
  });

  test.each([
    '12',
    '',
    'yesterday',
    '20250227',
    '2025-02-30',
    '2025-02-30T21:00Z',
    '2025-02-27T25:00Z',
    // Whose clock would that be?
    '2025-02-27T21:00',
    '2025-02-27 21:00:00',
    '2025-02-27T21:00+16:00',
    '2025-02-27T21:00Z; select 1',
    '2025-02-27T21:00:00.1234567Z',
  ])('%j is none', (text) => {
    expect(() => read(text)).toThrow(/^--since: ".*" is not a time; write a day, .* or a time with its zone/);
  });
});
