import { type Day, dayAt, dayEnd, dayStart, daysBetween, isDay } from '../../core/days.ts';
import { EXCHANGES, exchangeOfSegment, MARKET_ZONE } from '../../core/exchanges.ts';
import {
  isByInstrument,
  knownOption,
  MAX_INSTRUMENTS_PER_CALL,
  type Operation,
} from '../../declaration/operation.ts';
import { instrumentsParam, parameterNames } from '../../declaration/request-parameters.ts';
import type { Behaviour } from '../behaviour.ts';
import type { CheckedRequest } from '../checked-request.ts';
import { Diagnostic } from '../diagnostic.ts';
import type { Market } from '../market/market.ts';

const missing = (name: string) => new Diagnostic(`Parameter ${name} is missing.`);
const invalid = (name: string) => new Diagnostic(`Parameter ${name} is invalid.`);

function epoch(name: string, text: string): number {
  if (!/^\d{10}$/.test(text)) throw invalid(name);
  return Number(text);
}

function isoDay(name: string, text: string): Day {
  if (!isDay(text)) throw invalid(name);
  return text;
}

/** Reads one value for each parameter; unknown and repeated parameters are errors. */
function collect(operation: Operation, search: URLSearchParams): Map<string, string> {
  const names = parameterNames(operation, ['epoch', 'iso-date']);
  const parameters = new Map<string, string>();
  for (const [name, value] of search) {
    if (!names.has(name)) throw new Diagnostic(`Parameter ${name} is unknown.`);
    if (parameters.has(name)) throw invalid(name);
    if (value !== '') parameters.set(name, value);
  }
  return parameters;
}

function chooseValue<T extends string>(
  parameters: Map<string, string>,
  name: string,
  values: readonly [T, ...T[]],
): T {
  const value = parameters.get(name) ?? values[0];
  const known = values.find((candidate) => candidate === value);
  if (known === undefined) throw invalid(name);
  return known;
}

/** The days whose midnight (IST) is in [from, to], both ends included. */
function readRange(parameters: Map<string, string>, market: Market): CheckedRequest['range'] {
  const iso = parameters.has('fromDate') || parameters.has('toDate');
  const [fromName, toName] = iso ? ['fromDate', 'toDate'] : ['from', 'to'];
  const fromText = parameters.get(fromName);
  const toText = parameters.get(toName);
  if (fromText === undefined && toText === undefined) return null;
  if (fromText === undefined) throw missing(fromName);
  if (toText === undefined) throw missing(toName);
  const from = iso ? dayStart(isoDay(fromName, fromText), MARKET_ZONE) : epoch(fromName, fromText);
  const to = iso ? dayEnd(isoDay(toName, toText), MARKET_ZONE) : epoch(toName, toText);
  if (from > to) throw invalid(fromName);
  return market.daysWithin(from, to);
}

function readDay(parameters: Map<string, string>): Day | null {
  const text = parameters.get('date');
  if (text === undefined) return null;
  return text.includes('-') ? isoDay('date', text) : dayAt(epoch('date', text), MARKET_ZONE);
}

function readInstruments(operation: Operation, parameters: Map<string, string>): string[] {
  const name = instrumentsParam(operation);
  if (name === null) return [];
  const text = parameters.get(name);
  // A plus sign and %20 both arrive as a space; a plus inside a symbol arrives as %2B.
  const list = operation.request.instruments === 'one' ? [text?.trim() ?? ''] : (text ?? '').split(' ');
  const instruments = list.filter((word) => word !== '');
  if (instruments.length > MAX_INSTRUMENTS_PER_CALL) {
    throw new Diagnostic(`Parameter ${name} is out of allowed range of ${MAX_INSTRUMENTS_PER_CALL}.`);
  }
  if (instruments.length === 0 && isByInstrument(operation)) throw missing(name);
  return instruments;
}

function readOptions(operation: Operation, parameters: Map<string, string>): Record<string, string> {
  const options: Record<string, string> = {};
  for (const option of operation.request.options) {
    const { param } = option;
    const value = parameters.get(param) ?? option.fallback;
    if (value === undefined) continue;
    if (knownOption(option, value) !== value) throw invalid(param);
    options[param] = value;
  }
  return options;
}

/** Checks that the request selects data: by date, or by filters where these are enough. */
function checkSelection({ operation, options, day, range, instruments }: CheckedRequest): void {
  const { dates, datedWhen } = operation.request;
  if (dates === 'range' && range === null) {
    if (datedWhen === undefined) throw missing('from');
    if (datedWhen({ params: options, instruments })) throw new Diagnostic('Filters cant be empty.');
  }
  if (dates !== 'day' || day !== null) return;
  if (datedWhen?.({ params: options, instruments }) ?? true) throw missing('date');
}

function checkHistory({ range, day }: CheckedRequest, { historyDays }: Behaviour, today: Day): void {
  const from = range?.from ?? day;
  if (historyDays !== undefined && from !== null && daysBetween(from, today) > historyDays)
    throw new Diagnostic('Date is out of allowed range.');
}

/**
 * Reads the parameters of a request as strictly as they are specified.
 *
 * @throws Diagnostic with the line to send.
 */
export function checkRequest(
  operation: Operation,
  search: URLSearchParams,
  behaviour: Behaviour,
  market: Market,
): CheckedRequest {
  const parameters = collect(operation, search);
  const code = parameters.get('exchange');
  if (code === undefined) throw missing('exchange');
  const segment = [...EXCHANGES, ...operation.exchanges].find((candidate) => candidate === code);
  if (segment === undefined) throw new Diagnostic('Data for requested exchange is disabled.');
  // Dates are sent as text in any case; both forms can be read.
  chooseValue(parameters, 'dTFormat', ['String', 'Epoch']);
  const request: CheckedRequest = {
    operation,
    exchange: exchangeOfSegment(segment),
    range: readRange(parameters, market),
    day: readDay(parameters),
    instruments: readInstruments(operation, parameters),
    options: readOptions(operation, parameters),
    format: chooseValue(parameters, 'format', ['Json', 'Xml', 'Csv', 'CsvContent']),
  };
  checkSelection(request);
  checkHistory(request, behaviour, market.today());
  return request;
}
