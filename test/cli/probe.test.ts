import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changeSettings } from '../../src/cli/probe/settings-file.ts';
import { forAll } from '../support/for-all.ts';

const COUNT = { name: 'EOD_COUNT', value: 'ignore' } as const;

test.each([
  ['', 'EOD_COUNT=ignore\n'],
  ['A=1', 'A=1\nEOD_COUNT=ignore\n'],
  ['A=1\r\nEOD_COUNT=check\r\nB=2\r\n', 'A=1\r\nEOD_COUNT=ignore\r\nB=2\r\n'],
  [
    '# what it means\n#EOD_COUNT=check\n\nB=2\n',
    '# what it means\n#EOD_COUNT=check\nEOD_COUNT=ignore\n\nB=2\n',
  ],
  ['export EOD_COUNT = "check" # mine\n', 'EOD_COUNT=ignore\n'],
])('a setting of %j is changed where it stands', (before, after) => {
  expect(changeSettings(before, [COUNT]).text).toBe(after);
});

test('a value of several lines that looks like the setting is left alone', () => {
  expect(() => changeSettings('A="\nEOD_COUNT=check\n"\n', [COUNT])).toThrow('set EOD_COUNT=ignore yourself');
});

test('whatever the file holds, only the named settings are read otherwise, and the other lines stay', () => {
  const line = fc.oneof(
    fc.constantFrom(
      '',
      '# a comment',
      'EOD_COUNT=check',
      '#EOD_COUNT=check',
      '  EOD_TRIAL_DAY=2025-01-01',
      'B="x # y"',
    ),
    fc.string({ unit: fc.constantFrom('A', 'b', '=', ' ', '#', '_', '1') }).map((value) => `A=${value}`),
  );
  const changes = [COUNT, { name: 'EOD_TRIAL_DAY', value: '2025-02-27' } as const];
  forAll([fc.array(line)], (lines) => {
    const before = lines.join('\n');
    const { text, changed } = changeSettings(before, changes);
    expect({ ...parseEnv(`${text}\n`) }).toEqual({
      ...parseEnv(`${before}\n`),
      EOD_COUNT: 'ignore',
      EOD_TRIAL_DAY: '2025-02-27',
    });
    const others = (all: readonly string[]) => all.filter((one) => !/^\s*EOD_(COUNT|TRIAL_DAY)=/.test(one));
    expect(others(text.split('\n')).join('\n').trimEnd()).toBe(others(lines).join('\n').trimEnd());
    expect(changed.every(({ after }) => text.split('\n').includes(after))).toBe(true);
  });
});
