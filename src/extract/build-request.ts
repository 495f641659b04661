import { type Day, dayEnd, dayStart, isDay } from '../core/days.ts';
import { redactor } from '../core/environment.ts';
import { PipelineError } from '../core/errors.ts';
import type { AskedFor } from '../operations/fields.ts';
import {
  furtherParams,
  isDated,
  LIMITATION,
  MAX_INSTRUMENTS_PER_CALL,
  type Operation,
} from '../operations/operation.ts';
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
export function buildUrl(settings: RequestSettings, operation: Operation, asked: AskedFor): string {
  const { request } = operation;
  const query: string[] = [];
  // Values are encoded before they come here, because the `+` between symbols must stay as it is.
  const add = (name: string, encoded: string) => query.push(`${name}=${encoded}`);

  add('accessKey', encode(settings.accessKey));
  add('exchange', encode(asked.exchange));
  addInstruments(operation, asked, add);
  if (request.dates !== 'none' && isDated(operation, asked)) {
    addDates(request.dates, operation, asked, settings, add);
  }
  for (const option of request.options) {
    const value = asked.params[option.param] ?? option.fallback;
    if (value !== undefined && value !== '') add(option.param, encode(value));
  }
  for (const [name, value] of furtherParams(asked.params)) add(encode(name), encode(value));
  if (request.dTFormat) add('dTFormat', settings.dateFormat);
  add('format', settings.format);
  return `${settings.baseUrl}/${operation.name}?${query.join('&')}`;
}

/** The URL of the request that asks what the key may do. It contains the access key, too. */
export function buildLimitationUrl({
  baseUrl,
  accessKey,
}: Pick<SourceSettings, 'baseUrl' | 'accessKey'>): string {
  return `${baseUrl}/${LIMITATION}?accessKey=${encode(accessKey)}&format=Json`;
}

type Add = (name: string, encoded: string) => void;

function addInstruments(operation: Operation, asked: AskedFor, add: Add): void {
  const { instruments } = asked;
  const takes = operation.request.instruments;
  if (instruments.length === 0) {
    if (operation.windows.per === 'instrument')
      throw badRequest(operation, 'asks for one instrument, got none');
    return;
  }
  const most = takes === 'many' ? MAX_INSTRUMENTS_PER_CALL : takes === 'one' ? 1 : 0;
  if (instruments.length > most) {
    throw badRequest(operation, `takes at most ${most} instruments a request, got ${instruments.length}`);
  }
  if (instruments.some((symbol) => symbol.trim() === ''))
    throw badRequest(operation, 'got a blank instrument');
  const symbols = instruments.map(encode).join('+');
  add(takes === 'many' ? 'instrumentIdentifiers' : 'instrumentIdentifier', symbols);
}

function addDates(
  dates: 'range' | 'day',
  operation: Operation,
  { from, to }: AskedFor,
  { dateDialect, timeZone }: RequestSettings,
  add: Add,
): void {
  if (!isDay(from) || !isDay(to)) throw badRequest(operation, `got days that do not exist: ${from} to ${to}`);
  if (from > to) throw badRequest(operation, `got a reversed range: ${from} to ${to}`);
  const iso = dateDialect === 'iso-date';
  if (dates === 'day') {
    if (from !== to) throw badRequest(operation, `takes one day a request, got ${from} to ${to}`);
    add('date', iso ? from : epoch(dayStart, from, timeZone));
    return;
  }
  add(iso ? 'fromDate' : 'from', iso ? from : epoch(dayStart, from, timeZone));
  add(iso ? 'toDate' : 'to', iso ? to : epoch(dayEnd, to, timeZone));
}

function epoch(edge: (day: Day, zone: string) => number, day: Day, zone: string): string {
  return String(edge(day, zone));
}

/**
 * Percent-encodes one value so that nothing in it reads as syntax: `M&M` → `M%26M`,
 * `NIFTY 50` → `NIFTY%2050`, and also the `!'()*` that encodeURIComponent leaves (RFC 3986).
 */
function encode(value: string): string {
  if (/\p{Surrogate}/u.test(value)) {
    throw new PipelineError('a request value is not well-formed text', { kind: 'bad_request' });
  }
  return encodeURIComponent(value).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Makes the function that removes the access key from a text, both plain and as it is encoded in a URL. */
export function keyRedactor(accessKey: string): (text: string) => string {
  return redactor([accessKey]);
}

function badRequest(operation: Operation, problem: string): PipelineError {
  return new PipelineError(`${operation.name} ${problem}`, { kind: 'bad_request' });
}
