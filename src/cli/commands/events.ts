import { exampleDays } from '../../core/clock.ts';
import { type PipelineError, usageError } from '../../core/errors.ts';
import { priceEffectText } from '../../core/wording.ts';
import { EVENT_KINDS, EVENT_STATUSES } from '../../extract/corporate-actions/purpose.ts';
import type { Context } from '../../jobs/context.ts';
import type { StoredEvent } from '../../load/corporate-events.ts';
import { type Cli, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { exchangeOption, limit, onlyDays, optional, parseOpenRange, text, words } from '../options.ts';
import { count, plural } from '../output.ts';

/** An id has the exchange, the symbol, the day and the kind. */
const isEventId = (typed: string) => typed.includes(':');

const { from } = exampleDays();

export default defineCommand({
  path: 'events',
  group: 'Repair',
  summary:
    'List splits, bonuses, dividends and other corporate events, and decide those that need a decision.',
  args: { id: optional('id of an event, to show that one; or a symbol, to list its events') },
  options: {
    status: words('only events with these states: applied, needs_review, ignored', EVENT_STATUSES, 'status'),
    kind: words('only these kinds, e.g. split,bonus', EVENT_KINDS, 'kind'),
    symbol: text('<symbol>', 'only events of the share that has or had this symbol'),
    exchange: exchangeOption,
    ...onlyDays('ex-dates'),
    limit: limit(100),
  },
  json: 'a list of events',
  examples: [
    'eod events --status needs_review',
    'eod events BAJAJFINSV',
    `eod events NSE:VEEDOL:${from}:bonus`,
    `eod events set NSE:VEEDOL:${from}:bonus --factor 1:2`,
    `eod events set NSE:ITC:${from}:demerger --ignore`,
  ],
  async run(cli, { id, limit, json, ...values }) {
    if (id !== undefined && isEventId(id)) return showEvent(cli, id, json);
    const { listEvents } = await import('../../load/corporate-events.ts');
    const { openReadable } = await import('../open-readable.ts');
    const symbol = (id ?? values.symbol)?.trim();
    const filter = {
      statuses: values.status,
      kinds: values.kind,
      exchanges: values.exchange,
      symbol: symbol?.toUpperCase(),
      ...parseOpenRange(values),
    };
    const { db } = await openReadable(cli, 'tables');
    await refuseCodes({ db }, symbol === undefined ? [] : [symbol]);
    const { total, events } = await listEvents(db.pool, filter, limit);
    if (json) return printJson(cli, events);
    if (total === 0)
      return print(cli, 'no corporate event matches; "eod import" loads lists of the exchanges');
    print(cli, events.map(eventText).join('\n'));
    const more =
      total > events.length ? `, the first ${count(events.length)} listed; --limit shows more` : '';
    print(cli, `\n${plural(total, 'event')}${more}`);
  },
});

async function showEvent(cli: Cli, id: string, json: boolean): Promise<void> {
  const { listEvents } = await import('../../load/corporate-events.ts');
  const { openReadable } = await import('../open-readable.ts');
  const { db } = await openReadable(cli, 'tables');
  const [event] = (await listEvents(db.pool, { ids: [id] }, 1)).events;
  if (event === undefined) throw noSuchEvent(id);
  if (json) return printJson(cli, event);
  print(cli, eventText(event));
}

/** Refuses scrip codes instead of symbols. @throws PipelineError `usage` with the symbol, if it is known. */
export async function refuseCodes({ db }: Pick<Context, 'db'>, symbols: readonly string[]): Promise<void> {
  const { readCodesAsSymbols } = await import('../../load/corporate-events.ts');
  const [match] = await readCodesAsSymbols(db.pool, symbols);
  if (match === undefined) return;
  const { code, symbol } = match;
  const hint =
    symbol === null ? 'market.instruments has the symbols of scrip codes' : `its symbol is ${symbol}`;
  throw usageError(`--symbol: "${code}" is digits only, which is a scrip code and not a symbol; ${hint}`);
}

/** An event for people: its id and effect on one line, what the exchange's list says below. */
export function eventText(event: StoredEvent): string {
  const { id, exchange, ratio, priceFactor, amount, status, statusReason, purpose, listedBy } = event;
  const moves =
    event.effect === null || priceFactor !== null ? null : priceEffectText(event.kind, event.effect);
  const factor = priceFactor === null ? '' : `, prices × ${Number(Number(priceFactor).toPrecision(6))}`;
  const effect = [
    ratio === null ? null : `${ratio.replace(':', ' shares for ')}${factor}`,
    amount === null ? null : `Rs ${amount}`,
    status,
  ];
  const source = listedBy === null || listedBy === exchange ? null : `only ${listedBy} lists it`;
  const notes = [purpose, source, statusReason, moves].filter((text) => text !== null && text !== '');
  return [`${id}  ${effect.filter(Boolean).join('  ')}`, ...notes.map((text) => `    ${text}`)].join('\n');
}

export const noSuchEvent = (id: string): PipelineError =>
  usageError(`there is no event "${id}" ("eod events" lists them)`);
