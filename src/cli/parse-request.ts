import { Option } from 'commander';
import { readList } from '../core/environment.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import type { Context } from '../jobs/context.ts';
import type { GapScope } from '../jobs/runs/read-gaps.ts';
import type { RunRequest, Target } from '../load/state/run-request.ts';
import {
  allowedText,
  exchangesOf,
  type Operation,
  type RequestOption,
  spelledOption,
} from '../operations/operation.ts';
import { findDataSet, operationNamed, operations } from '../operations/registry.ts';
import { type DayContext, parseExchanges, parseOpenRange, parseRange, type RangeFlags } from './options.ts';

/** The flags of `eod backfill` that say what to ask for; request options are among them, by name. */
export interface BackfillFlags extends RangeFlags {
  readonly all?: boolean;
  readonly exchange?: string;
  readonly instruments?: string;
  readonly force?: boolean;
  readonly param?: readonly string[];
  readonly [option: string]: unknown;
}

/** What flags are read against. */
type RequestContext = DayContext & Pick<Context, 'config'> & { readonly cwd: string };

/**
 * What a command line asks for (pure but for an instrument file).
 *
 * @throws PipelineError `usage` for anything that makes no sense.
 */
export function backfillRequest(
  names: readonly string[],
  flags: BackfillFlags,
  context: RequestContext,
): RunRequest {
  const chosen = parseOperations(names, flags.all === true);
  const range = parseRange(flags, context);
  const exchanges = parseExchanges(flags.exchange);
  const instruments = parseInstruments(flags.instruments, context.cwd);
  checkInstruments(chosen, instruments);
  const options = parseRequestOptions(chosen, flags.param ?? [], flags);
  const refetchFrom = flags.force === true ? range.from : null;
  const targets = chosen.flatMap((operation): Target[] =>
    (exchanges ?? exchangesOf(operation, context.config)).map((exchange) => ({
      operation: operation.name,
      exchange,
      ...range,
      refetchFrom,
    })),
  );
  if (targets.length === 0) {
    const [first] = chosen;
    throw usageError(
      `${first?.name} is asked of ${first?.exchanges.join(' and ')} unless told otherwise, and EOD_EXCHANGES leaves that out: name one with --exchange`,
    );
  }
  return { kind: 'backfill', targets, instruments, options, live: false };
}

/** `A, B` or `@file`; empty when none are given. @throws PipelineError `usage` */
function parseInstruments(text: string | undefined, cwd: string): string[] {
  if (text === undefined) return [];
  let names: string[];
  try {
    names = readList(text, cwd);
  } catch (error) {
    throw usageError(`--instruments: ${text} cannot be read: ${messageOf(error)}`);
  }
  if (names.length === 0) throw usageError(`--instruments: ${text || 'it'} names no instrument`);
  return names;
}

function checkInstruments(chosen: readonly Operation[], instruments: readonly string[]): void {
  if (instruments.length === 0) return;
  if (chosen.some((operation) => operation.request.instruments !== 'none')) return;
  const names = chosen.map((operation) => operation.name).join(', ');
  throw usageError(`--instruments: ${names} cannot be asked by instrument`);
}

/** Operations by name, in any case, each once; or all of them. @throws PipelineError `usage` */
export function parseOperations(names: readonly string[], all: boolean): Operation[] {
  if (all && names.length > 0) throw usageError('give either names of operations or --all, not both');
  if (all) return [...operations];
  if (names.length === 0) {
    throw usageError('nothing to do: name operations ("eod operations" lists them) or give --all');
  }
  return [...new Set(splitNames(names).map(operationNamed))];
}

/** Names of operations and of data sets that come with files, in any case, each once. @throws PipelineError `usage` */
export function parseDataSets(names: readonly string[]): string[] {
  return [...new Set(splitNames(names).map((name) => findDataSet(name).name))];
}

const splitNames = (names: readonly string[]) =>
  names.flatMap((name) => name.split(',')).filter((name) => name !== '');

/** The flags that say where to look for gaps. */
export interface GapFlags extends RangeFlags {
  readonly exchange?: string;
}

/** @throws PipelineError `usage` for names and days that make no sense. */
export function gapScope(names: readonly string[], flags: GapFlags, context: DayContext): GapScope {
  return {
    operations: names.length === 0 ? undefined : parseOperations(names, false),
    exchanges: parseExchanges(flags.exchange),
    ...parseOpenRange(flags, context),
  };
}

/** The request options of all operations, each by its name, e.g. `--nature-of-report <value>`. */
export function requestOptions(): Option[] {
  return optionNames().map((param) => {
    const declaring = operations.filter((operation) => declared(operation, param) !== undefined);
    const meanings = declaring.map((operation) => {
      const option = declared(operation, param);
      const allowed = option === undefined ? null : allowedText(option);
      return `${option?.meaning}${allowed === null ? '' : ` (${allowed})`}`;
    });
    const names = declaring.map((operation) => operation.name).join(', ');
    return new Option(
      `--${param.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} <value>`,
      `${[...new Set(meanings)].join(' / ')} [${names}]`,
    );
  });
}

/** The names of the request options any operation declares, each once. */
function optionNames(chosen: readonly Operation[] = operations): string[] {
  return [...new Set(chosen.flatMap((operation) => operation.request.options).map(({ param }) => param))];
}

/**
 * The request options of the chosen operations, from `--param name=value` and the flags of their own.
 * A value must be known to every chosen operation that has the option.
 */
function parseRequestOptions(
  chosen: readonly Operation[],
  pairs: readonly string[],
  flags: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const options: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1 || at === pair.length - 1) throw usageError(`--param: "${pair}" is not name=value`);
    const param = knownOption(chosen, pair.slice(0, at));
    options[param] = checkedValue(chosen, param, pair.slice(at + 1));
  }
  for (const param of optionNames()) {
    const value = flags[param];
    if (typeof value === 'string') options[knownOption(chosen, param)] = checkedValue(chosen, param, value);
  }
  return options;
}

function declared(operation: Operation, param: string): RequestOption | undefined {
  return operation.request.options.find((option) => option.param === param);
}

function knownOption(chosen: readonly Operation[], name: string): string {
  const known = optionNames(chosen);
  const found = known.find((param) => param.toLowerCase() === name.toLowerCase());
  if (found !== undefined) return found;
  const names = chosen.map((operation) => operation.name).join(', ');
  if (known.length === 0) throw usageError(`${names} has no request option "${name}", nor any other`);
  throw usageError(
    `no chosen operation (${names}) has a request option "${name}"${didYouMean(name, known)} (known: ${known.join(', ')})`,
  );
}

function checkedValue(chosen: readonly Operation[], param: string, value: string): string {
  let spelled = value;
  for (const operation of chosen) {
    const option = declared(operation, param);
    if (option === undefined) continue;
    const found = spelledOption(option, value);
    if (found === null) {
      throw usageError(
        `${param}: ${operation.name} does not know "${value}"${didYouMean(value, option.values ?? [])} (known: ${allowedText(option)})`,
      );
    }
    spelled = found;
  }
  return spelled;
}
