import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { alertCommand } from './alert.ts';
import { backfillCommand } from './backfill.ts';
import { cancelCommand } from './cancel.ts';
import { type AddCommand, type Cli, examples } from './command.ts';
import { configCommand } from './config.ts';
import { demoCommand } from './demo.ts';
import { diffCommand } from './diff.ts';
import { fillGapsCommand } from './fill-gaps.ts';
import { findingsCommand } from './findings.ts';
import { gapsCommand } from './gaps.ts';
import { importCommand } from './import.ts';
import { migrateCommand } from './migrate.ts';
import { nightlyCommand } from './nightly.ts';
import { operationsCommand } from './operations.ts';
import { pruneCommand } from './prune.ts';
import { reconcileCommand } from './reconcile.ts';
import { rejectsCommand } from './rejects.ts';
import { replayCommand } from './replay.ts';
import { resumeCommand } from './resume.ts';
import { runCommand } from './run.ts';
import { runsCommand } from './runs.ts';
import { sandboxCommand } from './sandbox.ts';
import { schedulesCommand } from './schedules.ts';
import { statusCommand } from './status.ts';
import { upCommand } from './up.ts';

const COMMANDS: readonly AddCommand[] = [
  ...[
    demoCommand,
    upCommand,
    backfillCommand,
    nightlyCommand,
    importCommand,
    runsCommand,
    runCommand,
    resumeCommand,
  ],
  ...[cancelCommand, statusCommand, schedulesCommand, operationsCommand, migrateCommand, sandboxCommand],
  diffCommand,
  ...[replayCommand, rejectsCommand, pruneCommand],
  ...[gapsCommand, fillGapsCommand],
  ...[reconcileCommand, findingsCommand, alertCommand],
  configCommand,
];

/** The command line of `eod`. Mistakes throw, and are printed as one sentence. */
export function buildProgram(cli: Cli): Command {
  const program = new Command('eod')
    .description('Pulls end-of-day data of the Indian exchanges into Postgres.')
    .version(version())
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(oneSentence(text)) })
    .configureHelp({ showGlobalOptions: false })
    .helpCommand('help [command]', 'help for a command');
  for (const add of COMMANDS) add(program, cli);
  return program.addHelpText(
    'after',
    examples(
      'eod demo                                            a week of sandbox data in a private Postgres',
      'eod backfill --all --from 2025-02-20 --to 2025-02-27  pull a range of days',
      'eod nightly                                         catch up to today',
      'eod help backfill                                   everything about one command',
    ),
  );
}

/** `error: unknown option '--forc'\n(Did you mean --force?)` on one line, under our name. */
function oneSentence(text: string): string {
  const sentence = text
    .trim()
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/, '; did you mean $1?');
  return `eod: ${sentence}\n`;
}

function version(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}
