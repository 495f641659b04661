import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { captureCli } from '../support/cli.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const page = (name: string) => readFileSync(join(ROOT, 'docs', name), 'utf8');

const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'))
  // A quote within a quoted text.
  .map((code) => code.replaceAll("\\'", "'"))
  .join('\n');

/** The parts of a message that never differ. */
const partsOf = (message: string) =>
  message
    .split('…')
    .map((part) => part.trim())
    .filter((part) => part !== '');

test('each message that docs/troubleshooting.md explains is one that the code has', () => {
  const messages = [...page('troubleshooting.md').matchAll(/^\| (`.+?`) \| /gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, message = '']) => message),
  );
  expect(messages.length).toBeGreaterThan(32);
  const unknown = messages.filter((message) => partsOf(message).some((part) => !source.includes(part)));
  expect(unknown).toEqual([]);
  expect(partsOf('cannot use … for …').some((part) => !'cannot use it at'.includes(part))).toBe(true);
});

test('the commands on the pages are commands, with flags that they have', () => {
  const { cli } = captureCli();
  const { commands } = buildProgram(cli);
  const pages = [...readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md')), '../README.md'];
  const text = pages.map(page).join('\n');
  // In code alone: words may follow a command in prose.
  const code = [...text.matchAll(/^ {4}(.+)$|`([^`\n]+)`/gm)].map(
    ([, block, inline]) => block ?? inline ?? '',
  );
  // After -n it is a namespace of Kubernetes.
  const calls = code.flatMap((line) => [...line.matchAll(/(?:^|(?<! -n) |")eod ([a-z][\w-]*)([^#|&]*)/g)]);
  expect(calls.length).toBeGreaterThan(40);
  const wrong = calls.flatMap(([call, name, rest = '']) => {
    if (!commands.some((command) => command.name() === name)) return [call];
    const flags = commands
      .filter((command) => command.name().split(' ')[0] === name)
      .flatMap(({ options }) => options.map(({ long }) => long));
    return [...rest.matchAll(/--[a-z][\w-]*/g)].flatMap(([flag]) =>
      flag === '--help' || flags.includes(flag) ? [] : [`${call}: ${flag}`],
    );
  });
  expect(wrong).toEqual([]);
});
