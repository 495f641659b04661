import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, sep } from 'node:path';
import type { Environment } from './environment.ts';

/** Where the private Postgres keeps its data if EOD_DATA_DIR is not set. */
interface DataFolder {
  readonly path: string;
  /** A clause that follows "because". */
  readonly why: string;
}

/** What the choice depends on. */
interface Surroundings {
  /** The folder of this package. */
  readonly root: string;
  readonly cwd: string;
  readonly env: Environment;
  readonly platform?: NodeJS.Platform;
}

/** Whether a folder of this package is that of an installed one, and not a checkout. */
export const isInstalled = (root: string): boolean => root.split(sep).includes('node_modules');

const OWN = '.eod';
const NAME = 'eod-pipeline';

/**
 * Chooses the data folder. A database that is in `.eod` of the working folder goes on being used; earlier versions
 * always put it there. Otherwise an installed package keeps the data where programs of the user keep theirs, so that it
 * does not depend on the folder in which a command is started, and a checkout keeps them in its own `.eod`.
 */
export function defaultDataFolder({ root, cwd, env, platform = process.platform }: Surroundings): DataFolder {
  const isUsed = ['postgres', join('demo', 'postgres')].some((name) => existsSync(join(cwd, OWN, name)));
  if (isUsed) return { path: OWN, why: 'there is a database in .eod of the working folder' };
  if (!isInstalled(root)) {
    return { path: root === cwd ? OWN : join(root, OWN), why: 'this is a checkout' };
  }
  const folder = userDataFolder(env, platform);
  if (folder === null) return { path: OWN, why: 'the user has no home folder' };
  return {
    path: join(folder, NAME),
    why: 'eod is installed as a package, and this is the folder for data of the user',
  };
}

/** XDG_DATA_HOME (absolute, as its specification demands), or what the system uses for that. */
function userDataFolder(env: Environment, platform: NodeJS.Platform): string | null {
  const { XDG_DATA_HOME: xdg = '', LOCALAPPDATA: local } = env;
  if (platform === 'win32' && local) return local;
  if (platform !== 'win32' && isAbsolute(xdg)) return xdg;
  const usual: Partial<Record<NodeJS.Platform, string>> = {
    win32: join('AppData', 'Local'),
    darwin: join('Library', 'Application Support'),
  };
  const home = (platform === 'win32' ? env.USERPROFILE : env.HOME) || homeOfAccount();
  return home === null ? null : join(home, usual[platform] ?? join('.local', 'share'));
}

/** An account of a container may have no home. */
function homeOfAccount(): string | null {
  try {
    return homedir();
  } catch {
    return null;
  }
}
