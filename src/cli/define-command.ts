import type { Cli } from './cli.ts';

/** What may follow an option, and how it is read. Its name is the key under which a command declares it. */
export interface OptionType<Value> {
  readonly description: string;
  /** What is typed after the name, such as `<day>`; a flag has nothing. */
  readonly placeholder?: string;
  /**
   * Reads what was typed; without it the text is the value.
   *
   * @param flag the option as it is typed, for messages: `--from`.
   * @param before the value so far, if the option is given more than once.
   * @throws PipelineError `usage`
   */
  parse?(text: string, flag: string, before: Value | undefined): Value;
  /** The value if the option is not given. */
  readonly default?: Value;
  /** How help shows that value, if not as JSON. */
  readonly defaultText?: string;
  /** Options, by their keys, that contradict it. */
  readonly conflicts?: readonly string[];
}

/** The word, or all words, after the name of a command. Its name in the help is its key. */
export interface ArgumentType<Value> {
  readonly description: string;
  readonly isRequired?: boolean;
  /** Whether it takes all words that follow. */
  readonly isVariadic?: boolean;
  /** Whether it names one of a list, so that options which narrow the list contradict it. */
  readonly isOne?: boolean;
  /** Reads the word; without it the text is the value. @throws PipelineError `usage` */
  parse?(text: string): Value;
  /** The value if there is no word. */
  readonly default?: Value;
}

/** What `run` gets for arguments or options of these types. */
export type OptionValues<Types> = {
  readonly [Name in keyof Types]: Types[Name] extends { readonly default?: infer Value } ? Value : never;
};

/** The purposes of commands, in the order of the help. */
export const GROUPS = ['Load', 'Look', 'Repair', 'Set up'] as const;

interface CommandFacts {
  /** What is typed: `runs`, or `runs resume` for a verb of it. */
  readonly path: string;
  /** What it is for; a verb is listed with its command alone. */
  readonly group?: (typeof GROUPS)[number];
  /** What it does, for its own help; a list of commands shows the first sentence. */
  readonly summary: string;
  /** The kind of document that `--json` prints, if that is not obvious; false for what prints none. */
  readonly json?: string | false;
  readonly examples?: readonly string[];
}

/** A command as the program sees it. */
export interface CommandDefinition extends CommandFacts {
  /** No command has more than one. */
  readonly args: Readonly<Record<string, ArgumentType<unknown>>>;
  readonly options: Readonly<Record<string, OptionType<unknown>>>;
  run(cli: Cli, values: Readonly<Record<string, unknown>>): unknown;
}

/**
 * Declares a command, or a verb of one. Help, mistakes and `run` are made from the declaration; the types of the values
 * follow from its arguments and options.
 *
 * Every command is loaded for the help of one, so `run` imports what it works with only when it is called: clients for
 * Postgres, Redis and HTTP, and all that loads them.
 */
export function defineCommand<
  const Args extends Readonly<Record<string, ArgumentType<unknown>>> = Record<never, never>,
  const Options extends Readonly<Record<string, OptionType<unknown>>> = Record<never, never>,
>(
  definition: CommandFacts & {
    readonly args?: Args;
    readonly options?: Options;
    run(cli: Cli, values: OptionValues<Args> & OptionValues<Options> & { readonly json: boolean }): unknown;
  },
): CommandDefinition {
  const { args = {}, options = {}, ...facts } = definition;
  return { ...facts, args, options };
}
