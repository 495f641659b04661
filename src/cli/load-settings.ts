import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../core/config.ts';
import { defaultDataFolder } from '../core/data-folder.ts';
import { readEnvironment, readSecretFiles, settingsRedactor } from '../core/environment.ts';
import { usageError } from '../core/errors.ts';
import { type Cli, logNote } from './cli.ts';
import { demoSettings } from './demo-settings.ts';

/** Reads the settings. @throws PipelineError `usage` that lists every problem. */
export async function loadSettings(cli: Cli): Promise<Config> {
  const { loadConfig, unknownSettings } = await import('../core/config.ts');
  const environment = readEnvironment(cli.env, cli.cwd);
  const env =
    cli.demo === true
      ? demoSettings(cli, environment)
      : { EOD_DATA_DIR: defaultDataFolder(cli).path, ...environment };
  const config = loadConfig(env, cli.cwd);
  const { requestedOperations } = await import('../operations/requested.ts');
  requestedOperations(config);
  if (cli.demo === true && !existsSync(resolve(cli.cwd, config.EOD_DATA_DIR, 'postgres'))) {
    throw usageError('nothing has been loaded by "eod demo" yet: run it first');
  }
  for (const { name } of unknownSettings(environment))
    logNote(cli, `eod: ${name} is not a setting and is ignored`);
  return config;
}

/** Returns a function that removes secret settings from a text: errors of libraries may quote an address or a key. */
export function environmentRedactor({ env, cwd }: Cli): (text: string) => string {
  try {
    const settings = readEnvironment(env, cwd);
    return settingsRedactor({ ...settings, ...readSecretFiles(settings, cwd).values });
  } catch {
    // The .env cannot be read, which is the error that is being explained.
    return (text) => text;
  }
}
