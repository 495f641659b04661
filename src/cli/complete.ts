import type { Argument, Option } from 'commander';
import { EXCHANGES } from '../core/exchanges.ts';
import { dataSets, operations, tables } from '../operations/registry.ts';
import type { WordsOption } from './options.ts';
import { optionsOf, type Specification } from './specification.ts';

const operationNames = operations.map(({ name }) => name);
const dataSetNames = dataSets.map(({ name }) => name);

/** Segments are offered where an operation has them. */
const exchangeCodes = [...new Set([...EXCHANGES, ...operations.flatMap(({ exchanges }) => exchanges)])];

type Words = readonly string[];

/**
 * Known values of arguments, and of flags that do not declare them. A function imports what is not needed for the
 * others: somebody waits at a Tab.
 */
const VALUES: Readonly<Record<string, Words | (() => Promise<Words>)>> = {
  '--check': async () => (await import('../load/market/checks/index.ts')).checks().map(({ name }) => name),
  '--disable-operations': operationNames,
  '--exchange': exchangeCodes,
  '--operation': dataSetNames,
  operations: operationNames,
  name: dataSetNames,
  tables: tables.map(({ name }) => name),
};

/** A word that can be typed, and what it means, if that has to be said. */
interface Offer {
  readonly word: string;
  readonly meaning?: string;
}

/**
 * What can be typed next: a line for each word, with its meaning behind a tab; or the line `:files`, with what stands
 * before the name of a file in the same word.
 *
 * @param words what follows `eod`, up to the word at the cursor, which may be empty. Bash makes the `=` of
 *   `--flag=value` a word of its own.
 * @param globals the options that every command has.
 */
export async function offersFor(
  words: readonly string[],
  commands: readonly Specification[],
  globals: readonly Option[],
): Promise<string[]> {
  const before = words.slice(0, -1);
  const typed = words.at(-1) ?? '';
  const [path, isHelp] = pathOf(before);
  const command = commands.find(({ name }) => name === path[0]);
  const verb = command?.verbs?.find(({ name }) => name === path[1]);
  if (path.length === 0) {
    const others = isHelp ? [] : [{ name: 'help', summary: 'Show the help of a command' }];
    return matchingLines(
      typed.startsWith('-') ? globals.map(offerOf) : namesOf([...commands, ...others]),
      '',
      typed,
    );
  }
  if (command === undefined) return [];
  if (isHelp) return matchingLines(namesOf(command.verbs ?? []), '', typed);
  const { args = [], verbs = [] } = verb ?? command;
  const known = [...(await optionsOf(verb ?? command)), ...globals];
  const value = valueAt(before, typed);
  const option = known.find(({ long }) => long === value.flag);
  if (option !== undefined && (option.required || option.optional)) {
    return valueLines(option, value.start, value.typed);
  }
  if (typed.startsWith('-')) {
    return matchingLines(known.filter(({ hidden }) => !hidden).map(offerOf), '', typed);
  }
  const [argument] = args;
  return [
    ...matchingLines(namesOf(verbs), '', typed),
    ...(argument === undefined ? [] : await valueLines(argument, '', typed)),
  ];
}

/** The command and perhaps its verb, and whether their help is requested. */
function pathOf(before: readonly string[]): [path: string[], isHelp: boolean] {
  const [first, ...others] = before.filter((word) => !/^(-|=)/.test(word));
  if (first === undefined) return [[], false];
  return first === 'help' ? [others, true] : [[first, ...others], false];
}

/** The flag whose value stands at the cursor, what is typed of the value, and what precedes it in the same word. */
function valueAt(before: readonly string[], typed: string): { flag?: string; start: string; typed: string } {
  const [, flag, part] = /^(--[^=]+)=(.*)$/.exec(typed) ?? [];
  if (flag !== undefined) return { flag, start: `${flag}=`, typed: part ?? '' };
  if (typed === '=') return { ...flagBefore(before, -1), start: '', typed: '' };
  return { ...flagBefore(before, before.at(-1) === '=' ? -2 : -1), start: '', typed };
}

function flagBefore(before: readonly string[], at: number): { flag?: string } {
  const flag = before.at(at);
  return flag === undefined ? {} : { flag };
}

const namesOf = (specifications: readonly Specification[]): Offer[] =>
  specifications.map(({ name, summary }) => ({ word: name, meaning: summary }));

const offerOf = ({ long, description }: Option): Offer => ({ word: long ?? '', meaning: description });

/** The lines for a value of an option or argument. @param start what stands before it in the same word. */
async function valueLines(
  taken: (WordsOption | Argument) & Pick<WordsOption, 'words'>,
  start: string,
  typed: string,
): Promise<string[]> {
  const isOption = 'flags' in taken;
  const placeholder = isOption ? (taken.flags.split(/\s+/).at(-1) ?? '') : taken.name();
  if (/^[<[]?(path|file|dir)/i.test(placeholder)) return [`:files${start}`];
  const isList = placeholder === '<list>';
  const known = VALUES[isOption ? (taken.long ?? '') : placeholder] ?? taken.words ?? taken.argChoices ?? [];
  const words = typeof known === 'function' ? await known() : known;
  const listed = isList ? typed.slice(0, typed.lastIndexOf(',') + 1) : '';
  return matchingLines(
    words.map((word) => ({ word })),
    `${start}${listed}`,
    typed.slice(listed.length),
  );
}

/** The lines for those words that go on as was typed. */
function matchingLines(offers: readonly Offer[], start: string, typed: string): string[] {
  return offers
    .filter(({ word }) => word.startsWith(typed))
    .map(({ word, meaning }) => `${start}${word}${meaning === undefined ? '' : `\t${short(meaning)}`}`);
}

/** The first sentence of a description without examples and choices: shells show it beside each word. */
const short = (text: string) =>
  (text.split(/\.$|\. (?=[A-Z])|;| \(| \[|,? e\.g\. /)[0] ?? text).replace(/\s+/g, ' ');
