import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defaultDataFolder } from '../../src/core/data-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
const root = '/usr/lib/node_modules/eod-pipeline';
const NPX = '/home/asha/.npm/_npx/0a1b/node_modules/eod-pipeline';
const env = { HOME: '/home/asha' };

test.each<[string, Parameters<typeof defaultDataFolder>[0], string]>([
  ['npm install --global', { root, cwd, env, platform: 'linux' }, '/home/asha/.local/share/eod-pipeline'],
  ['npx', { root: NPX, cwd, env, platform: 'linux' }, '/home/asha/.local/share/eod-pipeline'],
  ['root', { root, cwd, env: { HOME: '/root' }, platform: 'linux' }, '/root/.local/share/eod-pipeline'],
  [
    'XDG_DATA_HOME',
    { root, cwd, env: { ...env, XDG_DATA_HOME: '/data' }, platform: 'linux' },
    '/data/eod-pipeline',
  ],
  [
    'XDG_DATA_HOME that is relative, and therefore has to be ignored',
    { root, cwd, env: { ...env, XDG_DATA_HOME: 'data' }, platform: 'linux' },
    '/home/asha/.local/share/eod-pipeline',
  ],
  [
    'macOS',
    { root, cwd, env: { HOME: '/Users/asha' }, platform: 'darwin' },
    '/Users/asha/Library/Application Support/eod-pipeline',
  ],
  [
    'Windows',
    { root, cwd, env: { LOCALAPPDATA: '/c/asha/AppData/Local' }, platform: 'win32' },
    '/c/asha/AppData/Local/eod-pipeline',
  ],
  [
    'Windows without LOCALAPPDATA',
    { root, cwd, env: { USERPROFILE: '/c/asha' }, platform: 'win32' },
    '/c/asha/AppData/Local/eod-pipeline',
  ],
  [
    'an environment without HOME',
    { root, cwd, env: {}, platform: 'linux' },
    join(homedir(), '.local', 'share', 'eod-pipeline'),
  ],
])('an installed package keeps its data in the folder of the user: %s', (_, surroundings, path) => {
  expect(defaultDataFolder(surroundings)).toEqual({ path, why: expect.stringMatching(/installed/) });
});

test('a checkout keeps its data in its own .eod, wherever a command is started', () => {
  const why = expect.stringMatching(/checkout/);
  expect(defaultDataFolder({ root: cwd, cwd, env })).toEqual({ path: '.eod', why });
  expect(defaultDataFolder({ root: '/home/asha/eod-pipeline', cwd, env })).toEqual({
    path: '/home/asha/eod-pipeline/.eod',
    why,
  });
});

test.each(['postgres', 'demo/postgres'])('.eod/%s of the working folder goes on being used', (database) => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, '.eod'), { recursive: true });
  // A folder without a database is nothing that could be lost.
  expect(defaultDataFolder({ root, cwd: folder, env }).path).not.toBe('.eod');
  mkdirSync(join(folder, '.eod', database), { recursive: true });
  const why = expect.stringMatching(/there is a database in \.eod/);
  for (const checkout of [root, '/home/asha/eod-pipeline']) {
    expect(defaultDataFolder({ root: checkout, cwd: folder, env })).toEqual({ path: '.eod', why });
  }
});
