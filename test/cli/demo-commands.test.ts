import { expect, test } from 'vitest';
import { logStderr, print, printJson } from '../../src/cli/cli.ts';
import { captureCli } from '../support/cli.ts';

test('with --demo, commands that are printed have it too', () => {
  const { cli, stdout } = captureCli();
  const text =
    'eod gaps fill\n    eod events set A --ignore\n"eod runs resume 12" requests it again; "eod demo" loads; eod: no eod.env';
  print(cli, text);
  expect(stdout()).toBe(`${text}\n`);
  const shown = captureCli();
  shown.cli.demo = true;
  print(shown.cli, text);
  printJson(shown.cli, { command: 'eod --demo status', other: 'eod issues' });
  logStderr(shown.cli, text);
  const ofDemo =
    'eod --demo gaps fill\n    eod --demo events set A --ignore\n"eod --demo runs resume 12" requests it again; "eod demo" loads; eod: no eod.env\n';
  expect(shown.stderr()).toBe(ofDemo);
  expect(shown.stdout()).toBe(
    `${ofDemo}{\n  "command": "eod --demo status",\n  "other": "eod --demo issues"\n}\n`,
  );
});
