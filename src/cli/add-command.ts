import { Argument, Command, Option } from 'commander';
import { usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import type { Cli } from './cli.ts';
import type { ArgumentType, CommandDefinition, OptionType, WordsBesideVerbs } from './define-command.ts';
import { examples } from './output.ts';

/**
 * Adds a command as it is declared. A verb is a command whose name is of two words, such as `runs resume`.
 *
 * @param verbs of this command.
 */
export function addCommand(
  program: Command,
  definition: CommandDefinition,
  verbs: readonly string[],
  cli: Cli,
): Command {
  const { path, summary, args, options, json } = definition;
  const command = new Command(path).copyInheritedSettings(program).description(summary);
  for (const [name, type] of Object.entries(args)) {
    command.addArgument(makeArgument(name, type));
    // Its words are read by `readWords`, which explains what is wrong with them.
    command.allowExcessArguments(type.besideVerbs !== undefined);
  }
  for (const [name, type] of Object.entries(options)) command.addOption(makeOption(name, type));
  if (json !== false) {
    command.option('--json', `print one JSON document${json === undefined ? '' : `: ${json}`}`);
  }
  if (verbs.length > 0) {
    const usages = verbs.map((verb) => `\n       eod ${path} ${verb} …`);
    command.usage(`${command.usage()}${usages.join('')}`);
  }
  if (definition.examples !== undefined) command.addHelpText('after', examples(definition.examples));
  program.addCommand(command);
  return command.action(async () => {
    refuseFlagsAsValues(command);
    await definition.run(cli, readValues(command, definition, verbs));
  });
}

function makeArgument(name: string, { description, isRequired, isVariadic, missing }: ArgumentType<unknown>) {
  const word = isVariadic === true ? `${name}...` : name;
  const argument = new Argument(isRequired === true ? `<${word}>` : `[${word}]`, description);
  return missing === undefined ? argument : argument.default(missing);
}

/** `--dry-run` for the key `dryRun`. */
const flagName = (key: string) => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

function makeOption(key: string, type: OptionType<unknown>): Option {
  const { description, placeholder, missing, missingText, conflicts = [] } = type;
  const flag = flagName(key);
  const option = new Option(placeholder === undefined ? flag : `${flag} ${placeholder}`, description);
  if (placeholder !== undefined && missing !== undefined) option.default(missing, missingText);
  if (type.parse !== undefined) option.argParser((text, before) => type.parse?.(text, flag, before));
  return option.conflicts([...conflicts]);
}

/** The values of arguments and options, by their keys. */
function readValues(
  command: Command,
  { args, options }: CommandDefinition,
  verbs: readonly string[],
): Record<string, unknown> {
  const values = Object.entries({ ...options, json: { missing: false } }).map(([key, { missing }]) => [
    key,
    command.getOptionValue(key) ?? missing,
  ]);
  const words = Object.entries(args).map(([key, type]) => {
    if (type.besideVerbs !== undefined) checkWords(command, type.besideVerbs, verbs);
    const [first] = command.args;
    if (type.isVariadic === true) return [key, command.args];
    return [key, first === undefined ? type.missing : (type.parse?.(first) ?? first)];
  });
  return Object.fromEntries([...values, ...words]);
}

/** Refuses words after the name of a list that are neither a verb nor what else may stand there. @throws PipelineError `usage` */
function checkWords(command: Command, { noun, accepts }: WordsBesideVerbs, verbs: readonly string[]): void {
  const [first, second] = command.args;
  const [argument] = command.registeredArguments;
  const name = command.name();
  if (first === undefined) return;
  if (verbs.includes(first)) {
    throw usageError(`${name}: flags follow the verb: write "eod ${name} ${first}" first`);
  }
  if (argument?.variadic === true && second !== undefined) return;
  if (!accepts(first, verbs)) {
    throw usageError(
      `${name}: "${first}" is neither ${noun} nor a verb (${verbs.join(', ')})${didYouMean(first, verbs)}`,
    );
  }
  if (argument?.variadic === true) return;
  if (second !== undefined) throw usageError(`${name}: "${second}" is too much: give one id`);
  // With an id, only `--json` says something: a flag that narrows the list would be ignored.
  const filters = command.options.filter(
    (option) => option.long !== '--json' && command.getOptionValueSource(option.attributeName()) === 'cli',
  );
  if (filters.length === 0) return;
  const flags = filters.map(({ long }) => long).join(', ');
  throw usageError(`${name}: "${first}" shows one, for which ${flags} means nothing: leave out one of them`);
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
