import { Command, CommanderError, Help, Option } from 'commander';
import { exampleDays } from '../core/clock.ts';
import { type PipelineError, usageError } from '../core/errors.ts';
import { didYouMean, nearest } from '../core/input.ts';
import { largest } from '../core/iterables.ts';
import { versionText } from '../core/version.ts';
import { addCommand } from './add-command.ts';
import { type Cli, EXIT, logStderr, print, printJson } from './cli.ts';
import { commands } from './commands/index.ts';
import { GROUPS } from './define-command.ts';
import { errorDocument, explain, findCause } from './explain-error.ts';
import { examples, PAGE_WIDTH, pageWidth, wrap } from './output.ts';

const firstWord = (words: string) => words.split(' ', 1)[0];

const isVerb = (path: string) => path.includes(' ');

/** The commands that are no verbs of another one. */
const COMMANDS = commands.filter(({ path }) => !isVerb(path));

/** The verbs of a command. */
const listVerbs = (command: string) =>
  commands.flatMap(({ path }) => (path.startsWith(`${command} `) ? [path.slice(command.length + 1)] : []));

const findCommand = (program: Command, name: string) =>
  program.commands.find((command) => command.name() === name);

/** What the first help shows: enough to load data and to look at it. */
const FIRST = ['demo', 'init', 'doctor', 'import', 'backfill', 'nightly', 'up', 'status', 'query'];

/** The summary of a command in a list: its first sentence, up to a colon or semicolon. */
const shortened = (summary: string) => summary.split(/\.$|\. (?=[A-Z])|[;:] /)[0] ?? summary;

/**
 * Builds the command line of `eod`. A mistake throws an error, which is printed as one sentence.
 *
 * @param args what is typed: only the commands that it names get options, because making those of all takes a third of
 *   the time in which help is printed. Without it all do.
 */
export function buildProgram(cli: Cli, args?: readonly string[]): Command {
  const program = createProgram(cli);
  for (const definition of commands) {
    const { path, summary } = definition;
    if (args === undefined || args.some((arg) => firstWord(arg) === firstWord(path))) {
      const command = addCommand(program, definition, listVerbs(path), cli);
      if (isVerb(path)) command.helpGroup('Verbs:');
      else command.summary(shortened(summary));
    } else if (FIRST.includes(path)) {
      program.command(path).summary(shortened(summary));
    }
  }
  addHelpCommand(cli, program);
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

/** The program without its commands: the options of all commands, how its help looks, and what precedes each command. */
function createProgram(cli: Cli): Command {
  const program: Command = new Command('eod')
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
      visibleCommands: (command) => {
        const name = command.name();
        const paths = command === program ? FIRST : listVerbs(name).map((verb) => `${name} ${verb}`);
        return paths.flatMap((path) => findCommand(program, path) ?? []);
      },
      subcommandTerm,
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
    .hook('preSubcommand', (_, command) => {
      const { demo, quiet, verbose, color } = program.opts();
      cli.demo = demo === true;
      cli.verbosity = quiet === true ? 'nothing' : verbose === true ? 'everything' : undefined;
      cli.color = color;
      cli.command = command.name();
    });
  return program;
}

/** Adds `help`, which shows the help of a command that is named, or a list of all commands. */
function addHelpCommand(cli: Cli, program: Command): void {
  program
    .command('help', { hidden: true })
    .description('Show the help of a command, or a list of all commands.')
    .argument('[command...]')
    .option('--all', 'list all commands')
    .action((names: string[], { all }: { readonly all?: boolean }) => {
      if (all === true) return print(cli, GROUPS.map(groupText).join('\n\n'));
      const command = names.length === 0 ? program : findCommand(program, names.join(' '));
      const [name = '', ...verb] = names;
      if (command === undefined)
        throw findCommand(program, name) === undefined
          ? unknownCommand(name)
          : unknownVerb(name, verb.join(' '));
      command.outputHelp();
    })
    .addHelpText('after', examples(['eod help backfill', 'eod help rejects retry', 'eod help --all']));
}

/** How a list of commands names one: `status`; a list of verbs also says what they take: `resume [options] <id>`. */
function subcommandTerm(this: Help, command: Command): string {
  const [, verb] = command.name().split(' ');
  if (verb === undefined) return command.name();
  return Help.prototype.subcommandTerm.call(this, command).replace(command.name(), verb);
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

/** The commands of a group, a line each. */
function groupText(group: (typeof GROUPS)[number]): string {
  const width = largest(COMMANDS.map(({ path }) => path.length));
  const members = COMMANDS.filter((command) => command.group === group);
  const lines = members.map(({ path, summary }) => `  ${path.padEnd(width)}  ${shortened(summary)}`);
  return [`${group}:`, ...lines].join('\n');
}

function unknownVerb(command: string, verb: string): PipelineError {
  const guess = didYouMean(verb, listVerbs(command));
  const whole = guess === '' ? ` ("eod help ${command}" explains it)` : '';
  return usageError(`unknown command '${verb}' of ${command}${guess}${whole}`);
}

const isUnknownCommand = ({ command }: Cli, error: unknown): error is CommanderError =>
  error instanceof CommanderError && error.code === 'commander.unknownCommand' && command === undefined;

function unknownCommand(name: string): PipelineError {
  const guess = didYouMean(
    name,
    COMMANDS.map(({ path }) => path),
  );
  return usageError(`unknown command '${name}'${guess}`, guess === '' ? 'list_commands' : undefined);
}

/** Runs one command line to its end, and closes what it has opened. @returns the exit code. */
export async function runProgram(cli: Cli, args: readonly string[]): Promise<number> {
  try {
    const words = joinVerb(args);
    await buildProgram(cli, words).parseAsync([...words], { from: 'user' });
  } catch (error) {
    const cause = isUnknownCommand(cli, error)
      ? unknownCommand(/'(.*?)'/.exec(error.message)?.[1] ?? '')
      : await findCause(error);
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

/** Options of the program, which may stand anywhere. */
const GLOBAL = /^(--demo|-[qv]|--quiet|--verbose|--no-color)$/;

/** SQL that begins with a comment (`-- why`) is no option, which has no white space in its name. */
const asOperand = (arg: string) => (/^--[^\s=]*\s/.test(arg) ? ` ${arg}` : arg);

/**
 * The command line with the name of a verb as one argument: `runs resume`.
 *
 * @throws PipelineError `usage` if a word resembles a verb: ids, symbols and names of data sets do not.
 */
function joinVerb(args: readonly string[]): readonly string[] {
  const start = args.findIndex((arg) => !GLOBAL.test(arg));
  const next = args.findIndex((arg, at) => at > start && !GLOBAL.test(arg));
  const [first = '', second = ''] = [args[start], args[next]];
  if (first === 'query') return args.map(asOperand);
  const verbs = listVerbs(first);
  if (verbs.includes(second))
    return args.flatMap((arg, at) => (at === start ? `${first} ${second}` : at === next ? [] : arg));
  if (/^[a-z]+$/.test(second) && nearest(second, verbs) !== null) throw unknownVerb(first, second);
  return args;
}
