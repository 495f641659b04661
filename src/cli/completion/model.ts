import type { Command, Option } from 'commander';
import { EXCHANGES } from '../../core/exchanges.ts';
import { EVENT_KINDS } from '../../extract/corporate-actions/purpose.ts';
import { checks } from '../../load/market/checks/index.ts';
import { SEVERITIES } from '../../load/state/findings.ts';
import { dataSets, operations, tables } from '../../operations/registry.ts';
import { CASINGS, ENVELOPES } from '../../sandbox/answer/format.ts';
import { CONTENT_TYPES, SHAPES } from '../../sandbox/behaviour.ts';
import { FAULT_KINDS } from '../../sandbox/faults.ts';
import { DIALECTS } from '../../sandbox/http/parameters.ts';
import { STATUSES } from '../commands/events-command.ts';
import { FORMATS } from '../commands/export.ts';

/** What can be typed as the value of a flag or argument. */
export interface Values {
  /** The known values; empty if any text is allowed. */
  readonly words: readonly string[];
  /** Whether several values may be given, separated by commas. */
  readonly list: boolean;
  readonly files: boolean;
}

interface CompletedOption {
  /** `--exchange`. */
  readonly name: string;
  readonly description: string;
  /** Null if it takes no value. */
  readonly value: Values | null;
}

/** A command as a shell completes it. */
export interface CompletedCommand {
  /** `rejects retry`; '' for the program itself. */
  readonly path: string;
  readonly description: string;
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  /** Values of its arguments; null if it takes none. */
  readonly argument: Values | null;
}

const operationNames = operations.map(({ name }) => name);
const dataSetNames = dataSets.map(({ name }) => name);

/** Segments are offered where an operation has them. */
const exchangeCodes = [...new Set([...EXCHANGES, ...operations.flatMap(({ exchanges }) => exchanges)])];

/** Known values of flags and arguments. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  '--casing': CASINGS,
  '--check': checks().map(({ name }) => name),
  '--content-type': CONTENT_TYPES,
  '--dialect': DIALECTS,
  '--disable-exchanges': exchangeCodes,
  '--disable-operations': operationNames,
  '--envelope': ENVELOPES,
  '--exchange': exchangeCodes,
  '--fail-on': SEVERITIES,
  '--fault': FAULT_KINDS,
  '--format': FORMATS,
  '--kind': EVENT_KINDS,
  '--operation': dataSetNames,
  '--partition': ['year'],
  '--severity': SEVERITIES,
  '--shapes': SHAPES,
  '--status': STATUSES,
  '[operations...]': operationNames,
  '[name]': dataSetNames,
  '<table>': tables.map(({ name }) => name),
  ...requestWords(),
};

/** Known values of the request options. Their flags are their names in kebab case. */
function requestWords(): Record<string, string[]> {
  const words: Record<string, string[]> = {};
  for (const { request } of operations) {
    for (const { param, values = [] } of request.options) {
      const flag = `--${param.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
      words[flag] = [...new Set([...(words[flag] ?? []), ...values])];
    }
  }
  return words;
}

/**
 * Describes the program and all its commands for completion.
 *
 * @param load loads a command's file, which adds its options and arguments.
 */
export async function describeProgram(
  program: Command,
  load: (command: Command) => Promise<void>,
): Promise<readonly CompletedCommand[]> {
  const commands = visible(program);
  const described = [describe(program, '')];
  for (const command of commands) {
    const isLoaded = command.options.length + command.registeredArguments.length > 0;
    if (!isLoaded) await load(command);
    for (const sub of visible(command)) described.push(describe(sub, `${command.name()} ${sub.name()}`));
    const own = describe(command, command.name());
    // `eod events --kind split` is short for `eod events list --kind split`.
    const implied = command.commands.find((sub) => sub.name() === 'list');
    const list = implied && describe(implied, '');
    described.push(list === undefined ? own : { ...list, path: own.path, subcommands: own.subcommands });
  }
  const names = commands.map((command) => command.name());
  return described.map((one) => (one.path === 'help' ? { ...one, argument: valuesOf('', names) } : one));
}

/** The commands that help lists, without the one that shows help of a command's commands. */
function visible(command: Command): Command[] {
  const listed = command.createHelp().visibleCommands(command);
  return listed.filter((one) => command.commands.includes(one));
}

function describe(command: Command, path: string): CompletedCommand {
  const [argument] = command.registeredArguments;
  const placeholder = (name: string) => {
    const dots = argument?.variadic === true ? '...' : '';
    return argument?.required === true ? `<${name}${dots}>` : `[${name}${dots}]`;
  };
  const help = command.createHelp();
  const own = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)]
    .filter((option) => option.long != null && option.long !== '--help')
    .map((option) => ({
      name: option.long as string,
      description: option.description,
      value: option.required || option.optional ? optionValues(option) : null,
    }));
  return {
    path,
    description: command.description(),
    subcommands: visible(command).map((sub) => ({ name: sub.name(), description: sub.description() })),
    options: [...own, { name: '--help', description: 'display help for command', value: null }],
    argument:
      argument === undefined
        ? null
        : valuesOf(placeholder(argument.name()), argument.argChoices ?? WORDS[placeholder(argument.name())]),
  };
}

function optionValues({ flags, long, argChoices, defaultValue }: Option): Values {
  const placeholder = flags.split(/\s+/).at(-1) ?? '';
  const isList = placeholder === '<list>';
  // A list whose default is all known values, such as --roles.
  const all = isList && typeof defaultValue === 'string' ? defaultValue.split(',') : undefined;
  return valuesOf(placeholder, argChoices ?? all ?? WORDS[long ?? '']);
}

function valuesOf(placeholder: string, words: readonly string[] = []): Values {
  return {
    words,
    list: placeholder === '<list>',
    files: /^[<[](path|file|dir)/i.test(placeholder),
  };
}
