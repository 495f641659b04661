import type { Config } from '../core/config.ts';
import { readList } from '../core/environment.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { EXCHANGE_CODES, EXCHANGES } from '../core/exchanges.ts';
import { didYouMean } from '../core/input.ts';
import {
  allowedText,
  exchangesOf,
  furtherParam,
  type Operation,
  type RequestOption,
  spelledOption,
} from '../declaration/operation.ts';
import type { Context } from '../jobs/context.ts';
import { findDataSet, findOperations, operations } from '../operations/registry.ts';
import { requestedOperations } from '../operations/requested.ts';
import type { RunRequest, Target } from '../state/request.ts';
import type { OptionType } from './define-command.ts';
import { type DayContext, parseOpenRange, parseRange, type RangeValues, splitList, text } from './options.ts';

/** The options of `eod backfill` that say what to request. Each request option is one too, under its own name. */
export interface BackfillValues extends RangeValues {
  readonly all?: boolean;
  readonly exchange?: string | undefined;
  readonly instruments?: string | undefined;
  readonly force?: boolean;
  readonly param?: readonly string[] | undefined;
  readonly [option: string]: unknown;
}

/** What parsing the flags depends on. */
type RequestContext = DayContext & Pick<Context, 'config'> & { readonly cwd: string };

/**
 * Makes the request that a command line describes (pure, except for reading an instrument file).
 *
 * @throws PipelineError `usage` if the flags are wrong or contradict each other.
 */
export function backfillRequest(
  names: readonly string[],
  flags: BackfillValues,
  context: RequestContext,
): RunRequest {
  const chosen = parseOperations(names, flags.all === true, context.config);
  const range = parseRange(flags, context);
  const { exchange } = flags;
  const exchanges = exchange === undefined ? null : parseExchanges(exchange, chosen, context.config);
  const instruments = parseInstruments(chosen, flags.instruments, context.cwd);
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
    const exchangesByDefault = [...new Set(chosen.flatMap((operation) => operation.exchanges))];
    throw usageError(
      `${listNames(chosen)} ${chosen.length === 1 ? 'is' : 'are'} requested for ${exchangesByDefault.join(' and ')} by default, which EOD_EXCHANGES leaves out: name an exchange with --exchange`,
    );
  }
  return { kind: 'backfill', targets, instruments, options, live: false };
}

/** Parses `A,B` or `@file`; empty if none is given. @throws PipelineError `usage` */
function parseInstruments(chosen: readonly Operation[], text: string | undefined, cwd: string): string[] {
  if (text === undefined) return [];
  let names: string[];
  try {
    names = readList(text, cwd);
  } catch (error) {
    throw usageError(`--instruments: ${text} cannot be read: ${messageOf(error)}`);
  }
  if (names.length === 0) throw usageError(`--instruments "${text}" names no instrument`);
  if (chosen.some((operation) => operation.request.instruments !== 'none')) return names;
  throw usageError(`--instruments: ${listNames(chosen)} cannot be requested by instrument`);
}

const listNames = (chosen: readonly Operation[]) => chosen.map(({ name }) => name).join(', ');

/**
 * Parses names of operations, in any case and without repeats; EOD_OPERATIONS need not request them. With `--all` these
 * are the operations that it requests.
 *
 * @throws PipelineError `usage`
 */
function parseOperations(names: readonly string[], all: boolean, config: Config): Operation[] {
  if (all && names.length > 0) throw usageError('give names of operations or --all, not both');
  if (all) return requestedOperations(config);
  if (names.length === 0) {
    throw usageError('nothing to do: name operations ("eod operations" lists them) or give --all');
  }
  return [...new Set(names.flatMap(splitList).flatMap(findOperations))];
}

/** The name of a data set, of an operation or of imported files, as it is declared. @throws PipelineError `usage` */
export const parseDataSet = (name: string): string => findDataSet(name).name;

/** Data sets, exchanges and days, as commands name them. */
interface ScopeValues extends RangeValues {
  readonly operations: readonly string[];
  readonly exchange: readonly string[] | undefined;
}

/**
 * Parses the data sets, exchanges and days of gaps, rejects or kept responses.
 *
 * @param find the data sets that a name means.
 * @throws PipelineError `usage` if a name or a day is wrong.
 */
export function parseScope<DataSet>(
  { operations: names, exchange, ...days }: ScopeValues,
  find: (name: string) => DataSet | readonly DataSet[],
  context?: DayContext,
) {
  return {
    operations: names.length === 0 ? undefined : [...new Set(names.flatMap(splitList).flatMap(find))],
    exchanges: exchange,
    ...parseOpenRange(days, context),
  };
}

/** The request options of all operations as options of a command, e.g. `--nature-of-report <value>`. */
export function requestOptions(): Record<string, OptionType<string | undefined>> {
  const options = optionNames().map((param) => {
    const declared = operations.flatMap((operation) => {
      const option = findOption(operation, param);
      return option === undefined ? [] : [{ operation, option }];
    });
    const meanings = declared.map(({ option }) => {
      const allowed = allowedText(option);
      return allowed === null ? option.meaning : `${option.meaning} (${allowed})`;
    });
    const names = listNames(declared.map(({ operation }) => operation));
    return [param, text('<value>', `${[...new Set(meanings)].join(' / ')} [${names}]`)];
  });
  return Object.fromEntries(options);
}

/** The names of the request options of these operations, without repeats. */
function optionNames(chosen: readonly Operation[] = operations): string[] {
  return [...new Set(chosen.flatMap((operation) => operation.request.options).map(({ param }) => param))];
}

/**
 * Parses the request options of the chosen operations, from `--param name=value` and from their own flags. Every chosen
 * operation that has the option must know the value.
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
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    const param = optionNames(chosen).find((option) => option.toLowerCase() === name.toLowerCase());
    if (param !== undefined) options[param] = readOptionValue(chosen, param, value);
    else {
      const setBy = PARAMS_SET_ELSEWHERE[name.toLowerCase()];
      if (setBy !== undefined) throw usageError(`--param: ${name} is set by ${setBy}`);
      options[furtherParam(name)] = value;
    }
  }
  for (const param of optionNames()) {
    const value = flags[param];
    if (typeof value === 'string') options[param] = readOptionValue(chosen, param, value);
  }
  return options;
}

/** Parameters, in lower case, that settings or other flags set, and which of these to use instead of `--param`. */
const PARAMS_SET_ELSEWHERE: Readonly<Record<string, string>> = {
  accesskey: 'EOD_ACCESS_KEY',
  exchange: '--exchange',
  format: 'EOD_FORMAT',
  dtformat: 'EOD_DATE_FORMAT',
  from: '--from',
  to: '--to',
  fromdate: '--from',
  todate: '--to',
  date: '--from and --to',
  instrumentidentifier: '--instruments',
  instrumentidentifiers: '--instruments',
};

/**
 * Parses the exchanges of a backfill. Only codes that are known, that a chosen operation declares or that a setting
 * names: a misspelled one would cost calls and bring nothing.
 *
 * @throws PipelineError `usage`
 */
function parseExchanges(text: string, chosen: readonly Operation[], config: Config): string[] {
  const settingCodes = Object.values(config.EOD_OPERATION_EXCHANGES).flat();
  const known = new Set([
    ...EXCHANGE_CODES,
    ...settingCodes,
    ...chosen.flatMap((operation) => operation.exchanges),
  ]);
  const codes = splitList(text.toUpperCase());
  if (codes.length === 0) throw usageError(`--exchange names no exchange (${EXCHANGES.join(', ')}, …)`);
  const unknown = codes.find((code) => !known.has(code));
  if (unknown === undefined) return codes;
  throw usageError(
    `--exchange: unknown exchange "${unknown}"${didYouMean(unknown, [...known])}; if the source has it, name it in EOD_OPERATION_EXCHANGES`,
  );
}

function findOption(operation: Operation, param: string): RequestOption | undefined {
  return operation.request.options.find((option) => option.param === param);
}

/** @throws PipelineError `usage` if no chosen operation has the option, or one that has it does not know the value. */
function readOptionValue(chosen: readonly Operation[], param: string, value: string): string {
  const known = optionNames(chosen);
  if (!known.includes(param)) {
    const others = known.length === 0 ? 'none' : known.join(', ');
    throw usageError(
      `no chosen operation (${listNames(chosen)}) has a request option "${param}" (known: ${others})`,
    );
  }
  let spelled = value;
  for (const operation of chosen) {
    const option = findOption(operation, param);
    if (option === undefined) continue;
    const spelling = spelledOption(option, value);
    if (spelling === null) {
      throw usageError(
        `${param}: ${operation.name} does not know "${value}"${didYouMean(value, option.values ?? [])} (known: ${allowedText(option)})`,
      );
    }
    spelled = spelling;
  }
  return spelled;
}
