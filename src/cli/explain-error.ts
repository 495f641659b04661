import { CommanderError } from 'commander';
import { isPipelineError, messageOf, PipelineError, type Remedy } from '../core/errors.ts';
import { type Cli, EXIT, logStderr } from './cli.ts';
import { environmentRedactor } from './load-settings.ts';

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

/** What went wrong: for an error of drizzle, which quotes the whole statement, what Postgres says. */
export async function findCause(error: unknown): Promise<unknown> {
  if (error instanceof PipelineError || error instanceof CommanderError) return error;
  const [{ DrizzleQueryError }, { databaseError }] = await Promise.all([
    import('drizzle-orm'),
    import('../postgres/database-errors.ts'),
  ]);
  return error instanceof DrizzleQueryError ? databaseError(error) : error;
}

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
  const isUsage = isPipelineError(error, 'usage');
  // A mistake of the user has no use for a stack trace, also with --verbose.
  const isVerbose = cli.verbosity === 'everything' && !isUsage;
  if ((isVerbose || /^(debug|trace)$/.test(cli.env.EOD_LOG_LEVEL ?? '')) && error instanceof Error) {
    logStderr(cli, redact(error.stack ?? ''));
  }
  return isUsage ? EXIT.usage : EXIT.failed;
}

/** Turns `error: unknown option '--forc'\n(Did you mean --force?)` into one line. */
function plainSentence(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/, '; did you mean $1?')
    .replace(/\.$/, '');
}

/** The command line that explains what was called. */
const helpLine = ({ command }: Cli) => ['eod help', command].filter(Boolean).join(' ');

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
export function errorDocument(cli: Cli, error: unknown) {
  const { exitCode } = cli;
  if (cli.life.cutShort() !== null)
    return { error: { kind: 'aborted', message: 'stopped by a signal', exitCode } };
  const ownKind = error instanceof PipelineError ? error.kind : 'internal';
  const kind = error instanceof CommanderError ? 'usage' : ownKind;
  return { error: { kind, message: describeError(cli, error), exitCode } };
}
