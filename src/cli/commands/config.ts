import { resolve } from 'node:path';
import { defaultDataFolder } from '../../core/data-folder.ts';
import { SECRET_SETTINGS, settingOrigins, shownSecret } from '../../core/environment.ts';
import { type Cli, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { type Column, table } from '../output.ts';

const COLUMNS: readonly Column<Awaited<ReturnType<typeof currentSettings>>[number]>[] = [
  { head: 'setting', cell: ({ name }) => name },
  { head: 'from', cell: ({ from }) => from },
  { head: 'value', cell: ({ value }) => asText(value) },
];

export default defineCommand({
  path: 'config',
  group: 'Set up',
  summary: 'Show every setting with its value and where it comes from; secrets are hidden.',
  examples: ['eod config', 'EOD_CONCURRENCY=8 eod config --json'],
  async run(cli, { json }) {
    const shown = await currentSettings(cli);
    if (json) {
      return printJson(cli, Object.fromEntries(shown.map(({ name, ...setting }) => [name, setting])));
    }
    print(cli, table(COLUMNS, shown));
    for (const { name, value, why, instead } of shown) {
      if (why !== undefined) print(cli, `\n${name} is ${value}, because ${why}.`);
      if (instead !== undefined) {
        print(cli, `\nThe private Postgres is in ${instead.path}, because ${instead.why}.`);
      }
    }
  },
});

const isSecret = (name: string) => (SECRET_SETTINGS as readonly string[]).includes(name);

/**
 * Each setting with its value and where it is from: `environment`, `.env`, `default`, or the variable that names the
 * file which holds the value. `why` a default depends on how eod is run follows "because"; `instead` says where the
 * private Postgres really is, if that is not in the data folder.
 */
async function currentSettings(cli: Cli) {
  const { clusterLocation } = await import('../../postgres/embedded/account.ts');
  const { settings } = await import('../../core/settings.ts');
  const config: Record<string, unknown> = await loadSettings(cli);
  const findOrigin = settingOrigins(cli.env, cli.cwd);
  const { path, why } = clusterLocation(resolve(cli.cwd, String(config.EOD_DATA_DIR), 'postgres'));
  const isElsewhere = config.DATABASE_URL === undefined && why !== null;
  return Object.keys(settings).map((name) => {
    const [from, value] = [findOrigin(name), config[name] ?? null];
    return {
      name,
      value: isSecret(name) && value !== null ? shownSecret(name, value) : value,
      from,
      ...(name === 'EOD_DATA_DIR' && from === 'default' ? { why: defaultDataFolder(cli).why } : {}),
      ...(name === 'EOD_DATA_DIR' && isElsewhere ? { instead: { path, why } } : {}),
    };
  });
}

function asText(value: unknown): string {
  if (value === null) return '';
  if (Array.isArray(value)) return value.join(',');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([name, part]) => `${name}=${part}`)
    .join(',');
}
