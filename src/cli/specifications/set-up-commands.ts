import { Argument, Option } from 'commander';
import type { sandboxFlags } from '../../sandbox/behaviour.ts';
import type { Specification } from '../specification.ts';

/** A fixed port, so that EOD_BASE_URL can stay the same. */
const SANDBOX_PORT = '8090';

function sandboxOption(point: (typeof sandboxFlags)[number]): Option {
  const { flag, description, fallback, repeatable } = point;
  const option = new Option(flag, description);
  if (repeatable === true) option.argParser((value, before: string[] = []) => [...before, value]);
  const shown = option.long === '--port' ? SANDBOX_PORT : fallback;
  return typeof shown === 'string' || typeof shown === 'number' ? option.default(`${shown}`) : option;
}

/** Commands that set up what eod needs. */
export const setUpCommands: readonly Specification[] = [
  {
    name: 'init',
    summary:
      'Write a .env file that has every setting as a comment. Then set the address of the source, the key and the database in it.',
    args: [new Argument('[file]', 'the file to write').default('.env')],
    options: [new Option('--force', 'replace the file if it exists')],
    examples: ['eod init', 'eod init --force', 'eod init /etc/eod/.env'],
    run: async () => (await import('../commands/init.ts')).writeSettings,
  },
  {
    name: 'config',
    summary: 'Show every setting with its value and where it comes from; secrets are hidden.',
    examples: ['eod config', 'EOD_CONCURRENCY=8 eod config --json'],
    run: async () => (await import('../commands/config-command.ts')).showSettings,
  },
  {
    name: 'doctor',
    summary:
      'Check what eod needs: Node, settings, database, queue, source, clock, quota, disk; name a remedy for each problem.',
    options: [
      new Option('--offline', 'make no call to the source; without it, one call is made and counted'),
      new Option('--alert', 'also post a test alert to EOD_ALERT_WEBHOOK'),
      new Option(
        '--source',
        'instead, request each operation once about its last due day, and show what is read; each call is counted',
      ).conflicts(['offline', 'alert']),
      new Option(
        '--save <dir>',
        'with --source: keep the bodies of the responses, without the key, in this folder',
      ),
    ],
    examples: [
      'eod doctor',
      'eod doctor --json --offline',
      'eod doctor --alert',
      'eod doctor --source --save responses/',
    ],
    run: async () => (await import('../commands/doctor.ts')).doctor,
  },
  {
    name: 'migrate',
    summary: 'Create the tables, or bring them up to this version. Safe to run again.',
    examples: ['eod migrate', 'eod migrate --json'],
    run: async () => (await import('../commands/migrate-command.ts')).migrate,
  },
  {
    name: 'sandbox',
    summary: 'Start a simulated data service, to try things without a key. Runs until Ctrl-C.',
    options: async () => (await import('../../sandbox/behaviour.ts')).sandboxFlags.map(sandboxOption),
    examples: [
      'eod sandbox --port 8090',
      'eod sandbox --casing camel --calls-per-hour 900 --delay 50',
      "eod sandbox --fault status=503,every=7 --fault 'diagnostic=Calls per hour are limited.,first=1'",
    ],
    json: false,
    run: async () => (await import('../commands/sandbox.ts')).serveSandbox,
  },
];
