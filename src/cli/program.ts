import { Command, CommanderError, Help, Option } from 'commander';
import { messageOf, PipelineError, type Remedy, usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { largest } from '../core/iterables.ts';
import { versionText } from '../core/version.ts';
import { type Cli, EXIT, environmentRedactor, logStderr, print, printJson } from './cli.ts';
import { exampleDays, examples } from './options.ts';
import { PAGE_WIDTH, pageWidth, wrap } from './output.ts';
import { type Specification, specify } from './specification.ts';
import { loadCommands } from './specifications/load-commands.ts';
import { lookCommands } from './specifications/look-commands.ts';
import { repairCommands } from './specifications/repair-commands.ts';
import { setUpCommands } from './specifications/set-up-commands.ts';

/** Every command by its purpose, in the order of the help: to load data, to look at it, to repair it. */
const GROUPS: Readonly<Record<string, readonly Specification[]>> = {
  Load: loadCommands,
  Look: lookCommands,
  Repair: repairCommands,
  'Set up': setUpCommands,
};

const COMMANDS = Object.values(GROUPS).flat();
const SPECIFICATIONS: ReadonlyMap<string, Specification> = new Map(
  COMMANDS.map((command) => [command.name, command]),
);

/** What the first help shows: enough to load data and to look at it. */
const FIRST = ['demo', 'init', 'doctor', 'import', 'backfill', 'nightly', 'up', 'status', 'query'];

/** What the list of commands says of one: its first sentence, without what it goes on to explain. */
const shortened = (summary: string) => summary.split(/\.$|\. (?=[A-Z])|[;:] /)[0] ?? summary;

/** Builds the command line of `eod`. A mistake throws an error, which is printed as one sentence. */
export function buildProgram(cli: Cli): Command {
  const program = new Command('eod')
    .description('Loads end-of-day data of the Indian exchanges into Postgres.')
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
      getOutHelpWidth: pageWidth,
    })
    .configureHelp({
      showGlobalOptions: true,
      minWidthToWrap: 1,
      formatItem,
      styleUsage: (usage) => wrap(`Usage: ${usage}`).slice('Usage: '.length),
    })
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .on('option:version', () => {
      // Computed only here, because in a checkout it runs git.
      cli.stdout.write(`${versionText()}\n`);
      throw new CommanderError(EXIT.done, 'commander.version', '');
    })
    .hook('preAction', (_, command) => refuseFlagsAsValues(command))
    .hook('preSubcommand', async (program, command) => {
      const { demo, quiet, verbose, color } = program.opts();
      cli.demo = demo === true;
      cli.verbosity = quiet === true ? 'nothing' : verbose === true ? 'everything' : undefined;
      cli.color = color;
      cli.command = command.name();
      await loadCommand(command, cli);
    });
  const first = FIRST.flatMap((name) => SPECIFICATIONS.get(name) ?? []);
  for (const { name, summary } of new Set([...first, ...COMMANDS])) {
    program
      .command(name, { hidden: !FIRST.includes(name) })
      .description(summary)
      .summary(shortened(summary));
  }
  program
    .command('help', { hidden: true })
    .description('Show the help of a command, or a list of all commands.')
    .argument('[command...]')
    .option('--all', 'list all commands')
    .action((names: string[], { all }: { readonly all?: boolean }) => {
      if (all !== true) return help(program, cli, names);
      if (names.length > 0)
        throw usageError(`help --all lists every command: leave out "${names.join(' ')}"`);
      print(cli, Object.keys(GROUPS).map(groupText).join('\n\n'));
    })
    .addHelpText('after', examples(['eod help backfill', 'eod help rejects retry', 'eod help --all']));
  const { from, to } = exampleDays();
  program.addHelpText('after', `\n${COMMANDS.length - FIRST.length} more commands: eod help --all`);
  return program.addHelpText(
    'after',
    examples([
      'eod demo             # a week of sandbox data in a private Postgres',
      `eod backfill --all --from ${from} --to ${to}`,
      'eod nightly          # catch up to today',
      'eod help backfill    # everything about one command',
    ]),
  );
}

/** With less room beside the terms, help prints descriptions below them. */
const LEAST_DESCRIPTION = 36;

/** A term and its description. */
function formatItem(this: Help, term: string, termWidth: number, description: string, helper: Help): string {
  const width = this.helpWidth ?? PAGE_WIDTH;
  if (description === '' || width - termWidth >= LEAST_DESCRIPTION)
    return Help.prototype.formatItem.call(this, term, termWidth, description, helper);
  return `  ${term}\n${helper.boxWrap(description, width - 6).replace(/^/gm, '      ')}`;
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

/** Gives a command its arguments, options, verbs and action, when it is called or explained. */
export async function loadCommand(command: Command, cli: Cli): Promise<void> {
  const specification = SPECIFICATIONS.get(command.name());
  if (specification === undefined) return;
  await specify(command, specification, cli);
  command.hook('preSubcommand', (_, verb) => {
    // Listing is no verb that is typed or has a help of its own.
    if (verb.name() !== 'list') cli.verb = verb.name();
  });
}

/** The commands of a group, a line each. */
function groupText(group: string): string {
  const commands = GROUPS[group] ?? [];
  const width = largest(COMMANDS.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${shortened(summary)}`);
  return [`${group}:`, ...lines].join('\n');
}

async function help(program: Command, cli: Cli, names: readonly string[]): Promise<void> {
  const typed = names.join(' ').toLowerCase();
  const group = Object.keys(GROUPS).find((name) => name.toLowerCase() === typed);
  if (group !== undefined) return print(cli, groupText(group));
  let command = program;
  for (const name of names) {
    const named = command.commands.find((candidate) => candidate.name() === name);
    if (named === undefined) {
      if (command === program) throw unknownCommand(name);
      const known = command.commands.map((candidate) => candidate.name());
      const guess = didYouMean(name, known);
      const whole = guess === '' ? ` ("eod help ${command.name()}" explains it)` : '';
      throw usageError(`unknown command '${name}' of ${command.name()}${guess}${whole}`);
    }
    // A verb is loaded with its command.
    if (command === program) await loadCommand(named, cli);
    command = named;
  }
  command.outputHelp();
}

/** Names what is spelled alike, or else the verb of a command, such as `gaps fill` if `fill-gaps` was typed. */
function unknownCommand(name: string) {
  const words = name.toLowerCase().split('-');
  const [verb] = COMMANDS.flatMap((command) =>
    (command.verbs ?? [])
      .filter(
        (candidate) =>
          words.includes(candidate.name) &&
          words.every((word) => word === candidate.name || word === command.name),
      )
      .map((candidate) => `; did you mean ${command.name} ${candidate.name}?`),
  );
  const guess = verb ?? didYouMean(name, [...SPECIFICATIONS.keys()]);
  return usageError(`unknown command '${name}'${guess}`, guess === '' ? 'list_commands' : undefined);
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
    await program.parseAsync([...meantBy(args)], { from: 'user' });
  } catch (error) {
    const cause = explainMistake(program, cli, await unwrapped(error));
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

/** What people type and what it means: `eod -h backfill` is `eod help backfill`, and `eod version` is `eod --version`. */
function meantBy(args: readonly string[]): readonly string[] {
  const globals = args.slice(
    0,
    args.findIndex((arg) => !/^(--demo|-[qv]|--quiet|--verbose|--no-color)$/.test(arg)),
  );
  const [first = '', ...others] = args.slice(globals.length);
  if (first === 'version' && others.length === 0) return ['--version'];
  return /^(-h|--help)$/.test(first) && others.length > 0 ? [...globals, 'help', ...others] : args;
}

/** Adds to some errors of commander which command is meant, and what it takes. */
function explainMistake(program: Command, cli: Cli, error: unknown): unknown {
  if (!(error instanceof CommanderError)) return error;
  const [, name = ''] = /'(.*?)'/.exec(error.message) ?? [];
  if (error.code === 'commander.unknownCommand' && cli.command === undefined) return unknownCommand(name);
  // Commander looks for the flag among those of the list too.
  if (error.code === 'commander.unknownOption' && error.message.includes(`Did you mean ${name}?`)) {
    const list = `"eod ${cli.command}"`;
    return usageError(
      `${name} is an option of the list of ${list}, not of its verb "${cli.verb}" ("${helpLine(cli)}" explains it)`,
    );
  }
  if (error.code !== 'commander.excessArguments') return error;
  const called = program.commands.find((candidate) => candidate.name() === cli.command);
  const command = called?.commands.find((candidate) => candidate.name() === name) ?? called;
  const path = command === called ? name : `${cli.command} ${name}`;
  const [argument] = command?.registeredArguments ?? [];
  const takes = argument === undefined ? 'no arguments' : `only one argument (${argument.name()})`;
  const flags = command?.options.map((option) => option.flags) ?? [];
  const options = flags.length === 0 || flags.length > MOST_FLAGS ? '' : `; its options: ${flags.join(', ')}`;
  return usageError(`${path} takes ${takes}${options} ("${helpLine(cli)}" explains it)`);
}

/** The command line that explains what was called. */
const helpLine = ({ command, verb }: Cli) => ['eod help', command, verb].filter(Boolean).join(' ');

/** A longer list of options is left to the help. */
const MOST_FLAGS = 8;

/** Drizzle's error quotes the whole statement; returns what Postgres said instead. */
async function unwrapped(error: unknown): Promise<unknown> {
  if (error instanceof PipelineError || error instanceof CommanderError) return error;
  const [{ DrizzleQueryError }, { databaseError }] = await Promise.all([
    import('drizzle-orm'),
    import('../postgres/database-errors.ts'),
  ]);
  return error instanceof DrizzleQueryError ? databaseError(error) : error;
}

/** The commands that help against an error. */
const REMEDIES: Readonly<Record<Remedy, string>> = {
  list_commands: '"eod help --all" lists them',
  import_unreleased:
    'keep it (pg_dump makes a backup), name an empty one in DATABASE_URL (or another folder in EOD_DATA_DIR), and run "eod migrate"; the small backup of docs/operations.md copies the responses that the old one keeps, from which "eod replay" makes the rest',
  delete_demo: 'delete that folder and run "eod demo" again',
  list_runs: '"eod runs" lists them',
  list_operations: '"eod operations" lists them',
  import_files: '"eod import" fills it from files of the exchanges',
  resume: '"eod runs resume ID" continues it, "eod replay OPERATION" starts again',
  migrate: 'run "eod migrate" as the owner of the tables',
};

/**
 * Prints one sentence that says what went wrong.
 *
 * @returns the exit code.
 */
export function explain(cli: Cli, error: unknown): number {
  const ofCommander = error instanceof CommanderError ? error : null;
  // Help that was requested is no error; help about a command line without a command explains itself.
  if (ofCommander?.exitCode === 0) return EXIT.done;
  if (ofCommander?.code !== 'commander.help') logStderr(cli, `eod: ${describeError(cli, error)}`);
  if (ofCommander !== null) return EXIT.usage;
  const redact = environmentRedactor(cli);
  const isUsage = error instanceof PipelineError && error.kind === 'usage';
  // A mistake of the user has no use for a stack trace, also with --verbose.
  const isVerbose = cli.verbosity === 'everything' && !isUsage;
  if ((isVerbose || /^(debug|trace)$/.test(cli.env.EOD_LOG_LEVEL ?? '')) && error instanceof Error) {
    logStderr(cli, redact(error.stack ?? ''));
  }
  return isUsage ? EXIT.usage : EXIT.failed;
}

/** Mistakes on the command line that do not say what would be right. */
const NEEDS_HELP = /unknownCommand|unknownOption|excessArguments|issingArgument/;

/** What went wrong and what helps, without secrets. */
function describeError(cli: Cli, error: unknown): string {
  if (error instanceof CommanderError) {
    const sentence = plainSentence(error.message);
    const isExplained = sentence.includes('; did you mean') || !NEEDS_HELP.test(error.code);
    const how = cli.command === undefined ? 'lists what there is' : 'explains it';
    return isExplained ? sentence : `${sentence} ("${helpLine(cli)}" ${how})`;
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
      message: describeError(cli, error),
      exitCode,
    },
  };
}
