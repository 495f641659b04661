import { type Argument, type Command, Help, type Option } from 'commander';
import { type PipelineError, usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import type { Cli } from './cli.ts';
import { examples, jsonOption, parseId } from './options.ts';

/**
 * Imports the function that does the work of a command. It gets the arguments, then the options. It is imported only when
 * it is called, so that help and mistakes on the command line need no client for Postgres, Redis or HTTP. No command has
 * more than one argument.
 */
type Load = () => Promise<(cli: Cli, ...values: never[]) => unknown>;

/** A command, or a verb of one: its help, completion and what it accepts are made from this. */
export interface Specification {
  readonly name: string;
  /** What it does, for its own help; a list of commands shows the first sentence. */
  readonly summary: string;
  readonly args?: readonly Argument[];
  /** A function if they depend on much that other commands need not load. */
  readonly options?: readonly Option[] | (() => Promise<readonly Option[]>);
  /** The kind of document that `--json` prints, if that is not obvious; false for what prints none. */
  readonly json?: string | false;
  readonly examples?: readonly string[];
  /** If it lists something: then `run` lists, without an id among its arguments unless `show` is missing. */
  readonly list?: ListGrammar;
  readonly verbs?: readonly Specification[];
  /** Rewrites what is typed after the name before options are looked for in it. */
  readonly rewrite?: (args: string[]) => string[];
  readonly run: Load;
}

/** How a person names one of the things that a command lists. */
interface ListGrammar {
  /** What may stand after the name of the command, beside verbs: `the number of a reject`. */
  readonly id: string;
  readonly isId?: (text: string) => boolean;
  readonly parse?: (text: string) => unknown;
  /** Shows the one with that id. */
  readonly show?: Load;
  /** The option of the list that is set by a word which is no id: by the symbol in `eod events TCS`. */
  readonly narrowedBy?: string;
}

/** The grammar of a list whose members have numbers. @param noun `reject` */
export function numbered(noun: string, show: Load): ListGrammar {
  return {
    id: `the number of a ${noun}`,
    isId: (text) => /^\d/.test(text),
    parse: (text) => parseId(noun, text),
    show,
  };
}

/** The options of a command, of which the last is `--json`. */
async function loadOptions({ options = [], json }: Specification): Promise<readonly Option[]> {
  const own = typeof options === 'function' ? await options() : options;
  return json === false ? own : [...own, jsonOption(json)];
}

/** Gives a command what its specification says. */
export async function specify(command: Command, specification: Specification, cli: Cli): Promise<void> {
  const { args = [], list, verbs = [], rewrite, run } = specification;
  const own = list === undefined ? command : addList(command, list);
  if (rewrite !== undefined) {
    const parseOptions = command.parseOptions.bind(command);
    command.parseOptions = (typed) => parseOptions(rewrite(typed));
  }
  for (const argument of args) own.addArgument(argument);
  for (const option of await loadOptions(specification)) own.addOption(option);
  if (specification.examples !== undefined) command.addHelpText('after', examples(specification.examples));
  const call = async (load: Load, [first, second, third]: readonly unknown[]) => {
    await (await load())(cli, first as never, second as never, third as never);
  };
  own.action((...values) => {
    const [words, flags, ...others] = values;
    const word = list === undefined ? undefined : onlyWord(words);
    if (list?.narrowedBy !== undefined && word !== undefined && narrows(command, list, word)) {
      return call(run, [{ ...Object(flags), [list.narrowedBy]: word }, ...others]);
    }
    if (word !== undefined && list?.isId?.(word) === false) throw noSuchVerb(command, list.id, word);
    if (list?.show === undefined) return call(run, values);
    if (word === undefined) return call(run, [flags, ...others]);
    return call(list.show, [list.parse?.(word) ?? word, flags, ...others]);
  });
  const show = list?.show;
  if (show !== undefined) {
    command
      .command('show', { hidden: true })
      .description(`Show one: the same as "eod ${command.name()} ID".`)
      .argument('<id>', list?.id)
      .addOption(jsonOption())
      .action((id: string, ...others) => call(show, [list?.parse?.(id) ?? id, ...others]));
  }
  for (const verb of verbs) {
    await specify(command.command(verb.name).description(verb.summary), verb, cli);
  }
}

/** The word that stands alone after the name of a list. */
function onlyWord(words: unknown): string | undefined {
  const [first, ...others] = [words ?? []].flat() as string[];
  return others.length > 0 ? undefined : first;
}

/** True if a word is a value of the option that narrows a list: neither an id nor a mistyped verb. */
function narrows(command: Command, { isId }: ListGrammar, word: string): boolean {
  if (isId?.(word) === true) return false;
  return word !== word.toLowerCase() || didYouMean(word, listVerbs(command)) === '';
}

/**
 * Gives a command the grammar of lists: alone it lists, with an id it shows one, with a verb it acts on one. Listing is
 * a command of its own, "list", whose name need not be typed: the help of the command explains it.
 *
 * @returns the command that lists; verbs are further commands.
 */
function addList(command: Command, { id }: ListGrammar): Command {
  const list = command
    .command('list', { isDefault: true, hidden: true })
    .description(command.description())
    .configureHelp(command.configureHelp())
    .allowExcessArguments()
    .hook('preAction', () => {
      const [first, second] = list.args;
      const name = command.name();
      if (first === undefined) return;
      if (listVerbs(command).includes(first)) {
        throw usageError(`${name}: flags follow the verb: write "eod ${name} ${first}" first`);
      }
      if (list.registeredArguments[0]?.variadic === true) return;
      if (second !== undefined) {
        if (/^\d|:/.test(first)) throw usageError(`${name}: "${second}" is too much: give one id`);
        throw noSuchVerb(command, id, first);
      }
      refuseListFlags(list, name, first);
    });
  const plain = Object.assign(new Help(), command.configureHelp());
  const explained = (target: Command) => (target === command ? list : target);
  command.commandsGroup('Verbs:').configureHelp({
    ...command.configureHelp(),
    visibleArguments: (target) => plain.visibleArguments(explained(target)),
    visibleOptions: (target) => plain.visibleOptions(explained(target)),
    visibleCommands: (target) => plain.visibleCommands(target).filter((verb) => verb.name() !== 'help'),
    commandUsage: (target) =>
      target === command
        ? `${plain.commandUsage(list).replace(' list', '')}${listVerbs(target)
            .map((verb) => `\n       eod ${target.name()} ${verb} …`)
            .join('')}`
        : plain.commandUsage(target),
  });
  return list;
}

/** With an id, only `--json` says something: a flag that narrows the list would be ignored. @throws PipelineError `usage` */
function refuseListFlags(list: Command, name: string, id: string): void {
  const filters = list.options.filter(
    (option) => option.long !== '--json' && list.getOptionValueSource(option.attributeName()) === 'cli',
  );
  if (filters.length === 0) return;
  const flags = filters.map(({ long }) => long).join(', ');
  throw usageError(`${name}: "${id}" shows one, for which ${flags} means nothing: leave out one of them`);
}

/** The verbs of a list, as help names them. */
function listVerbs(command: Command): string[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.map((verb) => verb.name());
}

/** The error about a word after the name of a list. @param id what else may stand there. */
function noSuchVerb(command: Command, id: string, text: string): PipelineError {
  const verbs = listVerbs(command);
  const known = verbs.length === 0 ? '' : ` nor a verb (${verbs.join(', ')})`;
  const not = verbs.length === 0 ? 'not' : 'neither';
  return usageError(`${command.name()}: "${text}" is ${not} ${id}${known}${didYouMean(text, verbs)}`);
}
