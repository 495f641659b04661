import { Command, CommanderError, Option } from 'commander';
import { messageOf, PipelineError, type Remedy, usageError } from '../core/errors.ts';
import { didYouMean, nearest } from '../core/input.ts';
import { largest } from '../core/iterables.ts';
import { versionText } from '../core/version.ts';
import { type Cli, type Commands, EXIT, environmentRedactor, logStderr, print, printJson } from './cli.ts';
import { exampleDays, examples } from './options.ts';

/**
 * Every command with its description, by what it is for, in the order of the help: from loading over looking at what is
 * there to repairing it.
 */
const GROUPS = {
  Load: {
    demo: 'Load the last 5 sessions of all operations from the sandbox into a private Postgres, and show them.',
    up: 'Run as a service: start the nightly runs on schedule, work on every open run, serve the dashboard. Stops on SIGTERM or Ctrl-C.',
    nightly:
      'Catch up to today: every operation from its last loaded session on, and a few sessions before it for late corrections.',
    backfill: 'Pull a range of past days. Days that are loaded already are skipped.',
    import:
      'Load files of the exchanges: bhav copies of any age, delivery positions, lists of corporate actions and changed symbols. Files that were imported before are skipped.',
  },
  Look: {
    status: 'Show what is loaded, what is missing, what was rejected, and what is being worked on.',
    runs: 'List the newest runs; with a number, show that run and the windows that failed. The verbs continue a run or cancel it.',
    gaps: 'List sessions that should be loaded and are not, and why. Exit code 1 if there are any. The verb loads them.',
    schedules: 'Show when "eod up" runs each operation next.',
    operations:
      'List the operations; with a name, show its parameters, tables, fields and units (the data dictionary).',
    query: 'Run one read-only SQL statement, and print its rows as a table, CSV or JSON.',
    psql: 'Open psql on the database, also on the private Postgres.',
    export: 'Write a table or view to a file of Parquet, CSV or JSON lines, for pandas, DuckDB and the like.',
    dbt: 'Write the tables and views as sources of dbt: descriptions, keys, tests, freshness.',
    diff: 'Show what changed in the tables of an operation: rows inserted, updated, withdrawn and listed again.',
    state:
      'Show the number of the current state of the tables, or of a past one. Written down with a report, it finds the same rows again.',
    wait: 'Wait until a night is complete, or the tables have a state. Exit code 1 if it is late.',
    web: 'Serve the dashboard alone, until Ctrl-C: what is loaded, what is missing and why, runs, data quality.',
  },
  Repair: {
    rejects:
      'List the records that were rejected and are not resolved yet; show one of them, or try them all again.',
    withdrawals:
      'List rows that the source stopped listing but that were kept, because they are suspiciously many; accept their withdrawal.',
    events:
      'List splits, bonuses, dividends and other corporate events, and decide those that need a decision.',
    reconcile: 'Check the stored data sets against each other; contradictions are stored as findings.',
    findings:
      'List the open findings of "eod reconcile", the newest days first; with a number, show that one.',
    replay:
      'Read kept answers and imported files again with the current code, and load them. Makes no call to the source.',
    verify:
      'Check that the rows are as they were loaded: work out the digest of each state again, and name the loads that differ.',
    prune:
      'Delete kept answers and imported files older than EOD_KEEP_RAW_DAYS, and runs older than EOD_KEEP_RUNS_DAYS. Rows of tables stay.',
  },
  'Set up': {
    init: 'Write a .env file that has every setting as a comment. Then set the address of the source, the key and the database in it.',
    config: 'Show every setting with its value and where it comes from; secrets are hidden.',
    doctor:
      'Check what eod needs: Node, settings, database, queue, source, clock, quota, disk; name a remedy for each problem.',
    migrate: 'Create the tables, or bring them up to this version. Safe to run again.',
    alert: 'Test whether alerts arrive.',
    sandbox: 'Start a simulated data service, to try things without a key. Runs until Ctrl-C.',
    completion: 'Print a script that completes commands, options and their values in bash, zsh or fish.',
  },
} as const;

/** Other spellings of what a list does, which stay. Help names them in one line. */
const ALIASES = {
  run: 'runs',
  resume: 'runs resume',
  cancel: 'runs cancel',
  'fill-gaps': 'gaps fill',
} as const;

/** The names of all commands. */
type CommandName =
  | { [Group in keyof typeof GROUPS]: keyof (typeof GROUPS)[Group] }[keyof typeof GROUPS]
  | keyof typeof ALIASES;

/** Flags that every command takes. */
interface GlobalFlags {
  readonly demo?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly color: boolean;
}

type CommandFile = () => Promise<{ readonly commands: Commands }>;

/**
 * The file of each command. It is loaded when the command is called or explained, and loads in turn what the command
 * works with when its action runs. So help and mistakes are answered before clients for Postgres, Redis and HTTP are
 * loaded.
 */
const FILES: Readonly<Record<CommandName, CommandFile>> = {
  demo: () => import('./commands/demo.ts'),
  up: () => import('./commands/up.ts'),
  web: () => import('./commands/up.ts'),
  backfill: () => import('./commands/backfill.ts'),
  nightly: () => import('./commands/nightly.ts'),
  import: () => import('./commands/import-command.ts'),
  runs: () => import('./commands/runs-command.ts'),
  run: () => import('./commands/runs-command.ts'),
  resume: () => import('./commands/runs-command.ts'),
  cancel: () => import('./commands/runs-command.ts'),
  status: () => import('./commands/status.ts'),
  schedules: () => import('./commands/schedules.ts'),
  operations: () => import('./commands/operations-command.ts'),
  query: () => import('./commands/query-command.ts'),
  psql: () => import('./commands/psql.ts'),
  export: () => import('./commands/export.ts'),
  dbt: () => import('./commands/dbt.ts'),
  migrate: () => import('./commands/migrate-command.ts'),
  sandbox: () => import('./commands/sandbox.ts'),
  diff: () => import('./commands/diff.ts'),
  state: () => import('./commands/state.ts'),
  verify: () => import('./commands/state.ts'),
  wait: () => import('./commands/wait.ts'),
  replay: () => import('./commands/replay.ts'),
  withdrawals: () => import('./commands/withdrawals-command.ts'),
  events: () => import('./commands/events-command.ts'),
  rejects: () => import('./commands/rejects-command.ts'),
  prune: () => import('./commands/prune.ts'),
  gaps: () => import('./commands/gaps.ts'),
  'fill-gaps': () => import('./commands/gaps.ts'),
  reconcile: () => import('./commands/findings-command.ts'),
  findings: () => import('./commands/findings-command.ts'),
  alert: () => import('./commands/alert-command.ts'),
  init: () => import('./commands/init.ts'),
  doctor: () => import('./commands/doctor.ts'),
  config: () => import('./commands/config-command.ts'),
  completion: () => import('./commands/completion.ts'),
};

/** What the list of commands says of one: its first sentence, without what it goes on to explain. */
const summaryOf = (description: string) => description.split(/\.$|\. (?=[A-Z])|[;:] /)[0] ?? description;

/** Builds the command line of `eod`. A mistake throws an error, which is printed as one sentence. */
export function buildProgram(cli: Cli): Command {
  const program = new Command('eod')
    .description('Pulls end-of-day data of the Indian exchanges into Postgres.')
    .addOption(
      new Option('-q, --quiet', 'print only results and errors: no notes, no progress').conflicts('verbose'),
    )
    .option('-v, --verbose', 'also print what is done, as EOD_LOG_LEVEL=debug does')
    .option('--no-color', 'print no bold text on a terminal, as NO_COLOR=1 does')
    .option('--demo', 'work with the data that "eod demo" has loaded')
    .option('-V, --version', 'print the version and commit')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.stdout.write(text),
      writeErr: (text) => cli.stderr.write(text),
      // Errors are thrown too, and printed by `explain`.
      outputError: () => undefined,
    })
    .configureHelp({ showGlobalOptions: true })
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .on('option:version', () => {
      // Computed only here, because in a checkout it runs git.
      cli.stdout.write(`${versionText()}\n`);
      throw new CommanderError(EXIT.done, 'commander.version', '');
    })
    .hook('preAction', (_, command) => refuseFlagsAsValues(command))
    .hook('preSubcommand', async (program, command) => {
      const { demo, quiet, verbose, color } = program.opts<GlobalFlags>();
      cli.demo = demo === true;
      cli.told = quiet === true ? 'nothing' : verbose === true ? 'everything' : undefined;
      cli.color = color;
      cli.command = command.name();
      await loadCommand(command, cli);
    });
  for (const [group, commands] of Object.entries(GROUPS)) {
    program.commandsGroup(`${group}:`);
    for (const [name, description] of Object.entries(commands)) {
      program.command(name).description(description).summary(summaryOf(description));
    }
  }
  for (const [name, stands] of Object.entries(ALIASES)) {
    program.command(name, { hidden: true }).description(`The same as "eod ${stands}".`);
  }
  program
    .command('help')
    .description('Show the help of a command.')
    .summary('Show the help of a command')
    .argument('[command...]')
    .action((names: string[]) => help(program, cli, names))
    .addHelpText('after', examples('eod help backfill', 'eod help rejects retry'));
  const { from, to } = exampleDays();
  const aliases = Object.keys(ALIASES).join(', ');
  program.addHelpText('after', `\nAliases: ${aliases} ("eod help NAME" says of what)`);
  return program.addHelpText(
    'after',
    examples(
      'eod demo             # a week of sandbox data in a private Postgres',
      `eod backfill --all --from ${from} --to ${to}`,
      'eod nightly          # catch up to today',
      'eod help backfill    # everything about one command',
    ),
  );
}

/** A flag after one that takes a value is taken for that value. @throws PipelineError `usage` */
function refuseFlagsAsValues(command: Command): void {
  const flags = command.options.map(({ long }) => long);
  for (const option of command.options) {
    const value: unknown = command.getOptionValue(option.attributeName());
    if (typeof value === 'string' && flags.includes(value)) {
      throw usageError(`${option.flags}: the value is missing, ${value} follows at once`);
    }
  }
}

/** Loads the file of a command, which adds its arguments, options and action. */
export async function loadCommand(command: Command, cli: Cli): Promise<void> {
  const name = command.name();
  const file = await (FILES as Readonly<Record<string, CommandFile>>)[name]?.();
  await file?.commands[name]?.(command, cli, (other) => loadCommand(other, cli));
  command.hook('preSubcommand', (_, verb) => {
    // Listing is no verb that is typed or has a help of its own.
    if (verb.name() !== 'list') cli.verb = verb.name();
  });
}

async function help(program: Command, cli: Cli, names: readonly string[]): Promise<void> {
  const asked = names.join(' ').toLowerCase();
  for (const [group, commands] of Object.entries(GROUPS)) {
    if (group.toLowerCase() !== asked) continue;
    const width = largest(Object.keys(commands).map((name) => name.length));
    const lines = Object.entries(commands).map(
      ([name, description]) => `  ${name.padEnd(width)}  ${summaryOf(description)}`,
    );
    return print(cli, [`${group}:`, ...lines].join('\n'));
  }
  let command = program;
  for (const name of names) {
    const known = command.commands.map((one) => one.name());
    const found = command.commands.find((one) => one.name() === name);
    if (found === undefined) {
      const guess = didYouMean(name, known);
      if (command === program) {
        throw usageError(`unknown command '${name}'${guess}`, guess === '' ? 'list_commands' : undefined);
      }
      const whole = guess === '' ? ` ("eod help ${command.name()}" explains it)` : '';
      throw usageError(`unknown command '${name}' of ${command.name()}${guess}${whole}`);
    }
    // A verb is loaded with its command.
    if (command === program) await loadCommand(found, cli);
    command = found;
  }
  command.outputHelp();
}

/** Turns `error: unknown option '--forc'\n(Did you mean --force?)` into one line. */
function plainSentence(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/, '; did you mean $1?')
    .replace(/\.$/, '');
}

/** Runs one command line to its end, and closes what it has opened. @returns the exit code. */
export async function runProgram(cli: Cli, args: readonly string[]): Promise<number> {
  const program = buildProgram(cli);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const cause = mistakeOf(program, cli, await unwrapped(error));
    // After a signal, an error is only a consequence of stopping.
    const signalCode = cli.life.cutShort();
    cli.exitCode = signalCode ?? explain(cli, cause);
    const isHelp = cause instanceof CommanderError && cause.exitCode === 0;
    if (args.includes('--json') && !cli.printedJson && !isHelp) printJson(cli, errorDocument(cli, cause));
  }
  for (const problem of await cli.life.close()) {
    logStderr(cli, `eod: while closing: ${problem}`);
    cli.exitCode ||= EXIT.failed;
  }
  return cli.exitCode;
}

/** Of some mistakes commander says less than is known: which alias is meant, and what a command takes. */
function mistakeOf(program: Command, cli: Cli, error: unknown): unknown {
  if (!(error instanceof CommanderError)) return error;
  const [, name = ''] = /'(.*?)'/.exec(error.message) ?? [];
  if (error.code === 'commander.unknownCommand' && cli.command === undefined) {
    // Commander does not guess hidden commands.
    const alias = error.message.includes('Did you mean') ? null : nearest(name, Object.keys(ALIASES));
    const meant = alias === null ? undefined : ALIASES[alias as keyof typeof ALIASES];
    if (meant !== undefined) return usageError(`unknown command '${name}'; did you mean "${meant}"?`);
  }
  // Commander looks for the flag among those of the list too.
  if (error.code === 'commander.unknownOption' && error.message.includes(`Did you mean ${name}?`)) {
    const list = `"eod ${cli.command}"`;
    return usageError(
      `${name} is for the list of ${list}, not for its verb "${cli.verb}" ("${helpOf(cli)}" explains it)`,
    );
  }
  if (error.code !== 'commander.excessArguments') return error;
  const called = program.commands.find((one) => one.name() === cli.command);
  const command = called?.commands.find((one) => one.name() === name) ?? called;
  const path = command === called ? name : `${cli.command} ${name}`;
  const [argument] = command?.registeredArguments ?? [];
  const takes = argument === undefined ? 'no arguments' : `only one argument (${argument.name()})`;
  const flags = command?.options.map((option) => option.flags) ?? [];
  const options = flags.length === 0 || flags.length > MOST_FLAGS ? '' : `; its options: ${flags.join(', ')}`;
  return usageError(`${path} takes ${takes}${options} ("${helpOf(cli)}" explains it)`);
}

/** The command line that explains what was called. */
const helpOf = ({ command, verb }: Cli) => ['eod help', command, verb].filter(Boolean).join(' ');

/** A longer list of options is left to the help. */
const MOST_FLAGS = 8;

/** Drizzle's error quotes the whole statement; returns what Postgres said instead. */
async function unwrapped(error: unknown): Promise<unknown> {
  if (error instanceof PipelineError || error instanceof CommanderError) return error;
  const [{ DrizzleQueryError }, { databaseError }] = await Promise.all([
    import('drizzle-orm'),
    import('../load/database/database-errors.ts'),
  ]);
  return error instanceof DrizzleQueryError ? databaseError(error) : error;
}

/** The commands that help against an error. */
const REMEDIES: Readonly<Record<Remedy, string>> = {
  list_commands: '"eod help" lists them',
  import_unreleased:
    'keep it (pg_dump makes a backup), name an empty one in DATABASE_URL (or another folder in EOD_DATA_DIR), and run "eod migrate"; the small backup of docs/operations.md copies the responses that the old one keeps, from which "eod replay" makes the rest',
  list_runs: '"eod runs" lists them',
  list_operations: '"eod operations" lists them',
  enable: '"eod operations enable" creates its tables',
  rebuild: '"eod replay OPERATION --rebuild" loads both again from the kept answers',
  resume: '"eod runs resume ID" goes on, "eod replay OPERATION --rebuild" begins anew',
  migrate: 'run "eod migrate" as the owner of the tables',
};

/**
 * Prints one sentence that says what went wrong.
 *
 * @returns the exit code.
 */
export function explain(cli: Cli, error: unknown): number {
  if (error instanceof CommanderError) {
    // Help that was asked for is no error; help about a command line without a command explains itself.
    if (error.exitCode === 0) return EXIT.done;
    if (error.code !== 'commander.help') logStderr(cli, `eod: ${sentenceOf(cli, error)}`);
    return EXIT.usage;
  }
  logStderr(cli, `eod: ${sentenceOf(cli, error)}`);
  const redact = environmentRedactor(cli);
  const isUsage = error instanceof PipelineError && error.kind === 'usage';
  // A mistake explains itself: whoever asked what is done need not read where it was found.
  const isVerbose = cli.told === 'everything' && !isUsage;
  if ((isVerbose || /^(debug|trace)$/.test(cli.env.EOD_LOG_LEVEL ?? '')) && error instanceof Error) {
    logStderr(cli, redact(error.stack ?? ''));
  }
  return isUsage ? EXIT.usage : EXIT.failed;
}

/** Mistakes on the command line that do not say what would be right. */
const NEEDS_HELP = /unknownCommand|unknownOption|excessArguments|issingArgument/;

/** What went wrong and what helps, without secrets. */
function sentenceOf(cli: Cli, error: unknown): string {
  if (error instanceof CommanderError) {
    const sentence = plainSentence(error.message);
    const isExplained = sentence.includes('; did you mean') || !NEEDS_HELP.test(error.code);
    const how = cli.command === undefined ? 'lists what there is' : 'explains it';
    return isExplained ? sentence : `${sentence} ("${helpOf(cli)}" ${how})`;
  }
  const remedy = error instanceof PipelineError ? error.remedy : undefined;
  const hint = remedy === undefined ? '' : ` (${REMEDIES[remedy]})`;
  // Errors of Node itself name the file apart from the problem.
  const { path } = Object(error) as NodeJS.ErrnoException;
  const file = path === undefined || error instanceof PipelineError ? '' : `${path}: `;
  return `${environmentRedactor(cli)(`${file}${messageOf(error) || String(error)}`)}${hint}`;
}

/** An error as a JSON document. */
function errorDocument(cli: Cli, error: unknown) {
  const kind = error instanceof PipelineError ? error.kind : null;
  const { exitCode } = cli;
  if (cli.life.cutShort() !== null)
    return { error: { kind: 'aborted', message: 'stopped by a signal', exitCode } };
  return {
    error: {
      kind: error instanceof CommanderError ? 'usage' : (kind ?? 'internal'),
      message: sentenceOf(cli, error),
      exitCode,
    },
  };
}
