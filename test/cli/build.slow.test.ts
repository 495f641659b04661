import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const COPIED = ['bin', 'scripts', 'src', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Written by npm when it has changed the packages. */
const INSTALLED = '.package-lock.json';

/** A checkout of its own, with the packages of this one. */
function checkout({ compiler }: { readonly compiler: boolean }): string {
  const folder = temporaryFolder();
  for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  const packages = join(folder, 'node_modules');
  mkdirSync(packages);
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (name === INSTALLED || (name === 'esbuild' && !compiler)) continue;
    symlinkSync(join(ROOT, 'node_modules', name), join(packages, name));
  }
  writeFileSync(join(packages, INSTALLED), '');
  return folder;
}

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function node(folder: string, ...args: string[]): Promise<Result> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
    });
  });
}

const version = (folder: string) => node(folder, 'bin/eod.mjs', '--version');

test('a checkout builds itself when it is new and when a source or a package has changed, once for all commands that start', async () => {
  const folder = checkout({ compiler: true });
  const first = await Promise.all([version(folder), version(folder), version(folder)]);
  for (const { code, stdout } of first) expect([code, stdout]).toEqual([0, '0.1.0\n']);
  expect(first.map(({ stderr }) => stderr).join('')).toBe('eod: dist/ has not been built: building it\n');
  expect(await version(folder)).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });

  // In a checkout git names the commit; a build without git names the commit that it was given.
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' }).trim();
  git('init', '--quiet');
  git(
    '-c',
    'user.name=eod',
    '-c',
    'user.email=eod@localhost',
    'commit',
    '--quiet',
    '--allow-empty',
    '-m',
    'begin',
  );
  expect((await version(folder)).stdout).toBe(`0.1.0 (${git('rev-parse', '--short=7', 'HEAD')})\n`);
  rmSync(join(folder, '.git'), { recursive: true });
  writeFileSync(join(folder, 'dist', 'commit'), 'abc1234');
  expect((await version(folder)).stdout).toBe('0.1.0 (abc1234)\n');

  const later = new Date(Date.now() + 1_000);
  utimesSync(join(folder, 'node_modules', INSTALLED), later, later);
  expect(await version(folder)).toEqual({
    code: 0,
    stdout: '0.1.0\n',
    stderr: 'eod: dist/ is older than src/ or its packages: building it\n',
  });

  // Types are not checked here: code that is being worked on runs all the same.
  writeFileSync(join(folder, 'src/cli/main.ts'), "const text: number = 'changed';\nconsole.log(text);\n");
  const soon = new Date(Date.now() + 2_000);
  utimesSync(join(folder, 'src/cli/main.ts'), soon, soon);
  const changed = await version(folder);
  expect(changed).toMatchObject({ code: 0, stdout: 'changed\n' });
  expect(changed.stderr).toBe('eod: dist/ is older than src/ or its packages: building it\n');
  expect(readdirSync(folder).filter((name) => name.startsWith('dist'))).toEqual(['dist']);

  const checked = await node(folder, 'scripts/build.mjs');
  expect(checked.code).toBe(1);
  expect(checked.stderr).toMatch(/main\.ts.*Type 'string' is not assignable to type 'number'/);

  rmSync(join(folder, 'node_modules/esbuild'));
  const { code, stdout, stderr } = await version(folder);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toBe(
    'eod: dist/ is older than src/ or its packages and the compiler is not installed: run "npm ci" and "npm run build"\n',
  );
}, 180_000);

test('without a compiler a checkout says what to do, and can still be prepared', async () => {
  const folder = checkout({ compiler: false });
  const { code, stdout, stderr } = await version(folder);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^eod: dist\/ has not been built .*run "npm ci" and "npm run build"\n$/);
  // What `npm ci --omit=dev` runs.
  expect(await node(folder, 'scripts/build.mjs', '--if-stale')).toMatchObject({ code: 0 });
});
