import type { Command } from 'commander';
import { loadConfig, readEnvironment, SECRET_SETTINGS, settings } from '../core/config.ts';
import { type Cli, examples } from './command.ts';
import { type Column, print, printJson, table } from './output.ts';

/** Where a setting's value comes from. */
type Origin = 'environment' | '.env' | 'default';

interface Setting {
  readonly name: string;
  readonly value: unknown;
  readonly from: Origin;
}

const COLUMNS: readonly Column<Setting>[] = [
  { head: 'setting', cell: ({ name }) => name },
  { head: 'value', cell: ({ value }) => asText(value) },
  { head: 'from', cell: ({ from }) => from },
];

export function configCommand(program: Command, _cli: Cli): Command {
  return program
    .command('config')
    .description('Every setting with its value and where it comes from; secrets are hidden.')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod config', 'EOD_CONCURRENCY=8 eod config --json'))
    .action((flags: { readonly json?: boolean }) => {
      const shown = currentSettings();
      if (flags.json !== true) return print(table(COLUMNS, shown));
      printJson(Object.fromEntries(shown.map(({ name, value, from }) => [name, { value, from }])));
    });
}

function currentSettings(): Setting[] {
  const config: Record<string, unknown> = loadConfig();
  const shell = readEnvironment(process.env, '');
  const file = readEnvironment({});
  return Object.keys(settings).map((name) => ({
    name,
    value: shownValue(name, config[name] ?? null),
    from: name in shell ? 'environment' : name in file ? '.env' : 'default',
  }));
}

/** A secret's value never shows; of an address everything but the password does. */
function shownValue(name: string, value: unknown): unknown {
  if (value === null || !(SECRET_SETTINGS as readonly string[]).includes(name)) return value;
  if (typeof value !== 'string' || !URL.canParse(value)) return 'set (redacted)';
  const address = new URL(value);
  // Chat services put the secret into the path.
  if (name === 'EOD_ALERT_WEBHOOK') return `${address.origin}/… (redacted)`;
  if (address.password !== '') address.password = 'redacted';
  for (const key of address.searchParams.keys()) {
    if (/pass|secret|key/i.test(key)) address.searchParams.set(key, 'redacted');
  }
  return address.href;
}

function asText(value: unknown): string {
  if (value === null) return '';
  if (Array.isArray(value)) return value.join(',');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value)
    .map(([name, part]) => `${name}=${part}`)
    .join(',');
}
