import { Argument, Command, Option } from 'commander';
import { usageError } from '../core/errors.ts';
import type { Cli } from './cli.ts';
import type { ArgumentType, CommandDefinition, OptionType } from './define-command.ts';
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
  for (const [name, type] of Object.entries(args)) command.addArgument(makeArgument(name, type));
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
    refuseFlagsOfList(command, definition);
    await definition.run(cli, readValues(command, definition));
  });
}

function makeArgument(name: string, type: ArgumentType<unknown>) {
  const { description, isRequired, isVariadic, default: value } = type;
  const word = isVariadic === true ? `${name}...` : name;
  const argument = new Argument(isRequired === true ? `<${word}>` : `[${word}]`, description);
  if (type.parse !== undefined) argument.argParser((text) => type.parse?.(text));
  return value === undefined ? argument : argument.default(value);
}

/** `--dry-run` for the key `dryRun`. */
const flagName = (key: string) => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

function makeOption(key: string, type: OptionType<unknown>): Option {
  const { description, placeholder, default: value, defaultText, conflicts = [] } = type;
  const flag = flagName(key);
  const option = new Option(placeholder === undefined ? flag : `${flag} ${placeholder}`, description);
  if (placeholder !== undefined && value !== undefined) option.default(value, defaultText);
  if (type.parse !== undefined) option.argParser((text, before) => type.parse?.(text, flag, before));
  return option.conflicts([...conflicts]);
}

/** The values of arguments and options, by their keys. */
function readValues(command: Command, { args, options }: CommandDefinition): Record<string, unknown> {
  const values = Object.entries({ ...options, json: { default: false } }).map(([key, option]) => [
    key,
    command.getOptionValue(key) ?? option.default,
  ]);
  const words = Object.keys(args).map((key, at) => [key, command.processedArgs[at]]);
  return Object.fromEntries([...values, ...words]);
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

/** @throws PipelineError `usage` if one of a list is named, and an option narrows the list. */
function refuseFlagsOfList(command: Command, { args, options }: CommandDefinition): void {
  const isOneNamed = Object.values(args).some(
    ({ isOne }, at) => isOne === true && command.processedArgs[at] !== undefined,
  );
  const narrowing = Object.keys(options).find((key) => command.getOptionValueSource(key) === 'cli');
  if (isOneNamed && narrowing !== undefined)
    throw usageError(`${flagName(narrowing)} is for the list: leave out "${command.args[0]}"`);
}
