import { type Day, dayEnd, dayStart, isDay } from '../core/days.ts';
import { percentEncoded } from '../core/environment.ts';
import { PipelineError } from '../core/errors.ts';
import type { Requested } from '../declaration/fields.ts';
import {
  furtherParams,
  isByInstrument,
  isDated,
  MAX_INSTRUMENTS_PER_CALL,
  type Operation,
} from '../declaration/operation.ts';
import { dateParams, instrumentsParam } from '../declaration/request-parameters.ts';
import type { SourceSettings } from './types.ts';

type RequestSettings = Pick<
  SourceSettings,
  'baseUrl' | 'accessKey' | 'dateDialect' | 'dateFormat' | 'format' | 'timeZone'
>;

/**
 * The URL of a request. It contains the access key: never log or store it.
 *
 * @throws PipelineError `bad_request` if the request itself is wrong: more than 25 instruments, a blank instrument,
 *   days that do not exist or are reversed. Such a request is never sent.
 */
export function buildUrl(settings: RequestSettings, operation: Operation, requested: Requested): string {
  const { request } = operation;
  const query: string[] = [];
  // Values are encoded before they come here, because the `+` between symbols must stay as it is.
  const add: Add = (name, encoded) => void query.push(`${name}=${encoded}`);

  add('accessKey', encode(settings.accessKey));
  add('exchange', encode(requested.exchange));
  addInstruments(operation, requested, add);
  if (request.dates !== 'none' && isDated(operation, requested)) {
    const values = dateValues(operation, requested, settings);
    for (const [at, name] of dateParams(operation, settings.dateDialect).entries())
      add(name, values[at] ?? '');
  }
  for (const option of request.options) {
    const value = requested.params[option.param] ?? option.fallback;
    if (value !== undefined && value !== '') add(option.param, encode(value));
  }
  for (const [name, value] of furtherParams(requested.params)) add(encode(name), encode(value));
  if (request.dTFormat) add('dTFormat', settings.dateFormat);
  add('format', settings.format);
  return `${settings.baseUrl}/${operation.name}?${query.join('&')}`;
}

type Add = (name: string, encoded: string) => void;

function addInstruments(operation: Operation, requested: Requested, add: Add): void {
  const { instruments } = requested;
  const takes = operation.request.instruments;
  if (instruments.length === 0) {
    if (isByInstrument(operation)) {
      throw badRequest(operation, `needs ${takes === 'many' ? 'instruments' : 'one instrument'}, got none`);
    }
    return;
  }
  const most = takes === 'many' ? MAX_INSTRUMENTS_PER_CALL : takes === 'one' ? 1 : 0;
  if (instruments.length > most) {
    throw badRequest(operation, `takes at most ${most} instruments a request, got ${instruments.length}`);
  }
  if (instruments.some((symbol) => symbol.trim() === ''))
    throw badRequest(operation, 'got a blank instrument');
  add(instrumentsParam(operation) ?? '', instruments.map(encode).join('+'));
}

/** The values of the parameters that say which days, in their order. */
function dateValues(
  operation: Operation,
  { from, to }: Requested,
  { dateDialect, timeZone }: RequestSettings,
): string[] {
  if (!isDay(from) || !isDay(to)) throw badRequest(operation, `got days that do not exist: ${from} to ${to}`);
  if (from > to) throw badRequest(operation, `got a reversed range: ${from} to ${to}`);
  const writeDay = (edge: typeof dayStart, day: Day) =>
    dateDialect === 'iso-date' ? day : String(edge(day, timeZone));
  switch (operation.request.dates) {
    case 'none':
      return [];
    case 'day':
      if (from !== to) throw badRequest(operation, `takes one day a request, got ${from} to ${to}`);
      return [writeDay(dayStart, from)];
    case 'range':
      return [writeDay(dayStart, from), writeDay(dayEnd, to)];
  }
}

/** Percent-encodes a value. @throws PipelineError `bad_request` */
export function encode(value: string): string {
  if (/\p{Surrogate}/u.test(value)) {
    throw new PipelineError('a request value is not well-formed text', { kind: 'bad_request' });
  }
  return percentEncoded(value);
}

function badRequest(operation: Operation, problem: string): PipelineError {
  return new PipelineError(`${operation.name} ${problem}`, { kind: 'bad_request' });
}
