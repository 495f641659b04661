import { type PipelineError, usageError } from '../../core/errors.ts';
import { didYouMean } from '../../core/input.ts';
import { priceEffectText } from '../../core/wording.ts';
import type { Context } from '../../jobs/context.ts';
import {
  type EventFilter,
  readCodesAsSymbols,
  listEvents as readEvents,
  type StoredEvent,
} from '../../load/corporate-events.ts';
import { type Cli, type JsonFlag, print, printJson } from '../cli.ts';
import { openReadable } from '../open-context.ts';
import { parseOpenRange, type RangeFlags } from '../options.ts';
import { count, plural } from '../output.ts';

interface ListFlags extends RangeFlags, JsonFlag {
  readonly status?: EventFilter['statuses'];
  readonly kind?: EventFilter['kinds'];
  readonly symbol?: string;
  readonly exchange?: readonly string[];
  readonly limit: number;
}

export async function listEvents(cli: Cli, flags: ListFlags): Promise<void> {
  const { from, to } = parseOpenRange(flags);
  const { status, kind, symbol, exchange } = flags;
  const filter: EventFilter = {
    statuses: status,
    kinds: kind,
    exchanges: exchange,
    symbol: symbol?.trim().toUpperCase(),
    from,
    to,
  };
  const { db } = await openReadable(cli, 'tables');
  await refuseCodes({ db }, symbol === undefined ? [] : [symbol.trim()]);
  const { total, events } = await readEvents(db.pool, filter, flags.limit);
  if (flags.json === true) return printJson(cli, events);
  if (total === 0) return print(cli, 'no corporate event matches; "eod import" loads lists of the exchanges');
  print(cli, events.map(eventText).join('\n'));
  print(
    cli,
    `\n${plural(total, 'event')}${total > events.length ? `, the first ${count(events.length)} listed; --limit shows more` : ''}`,
  );
}

/** Refuses scrip codes instead of symbols. @throws PipelineError `usage` with the symbol, if it is known. */
export async function refuseCodes({ db }: Pick<Context, 'db'>, symbols: readonly string[]): Promise<void> {
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

export async function showEvent(cli: Cli, id: string, flags: JsonFlag): Promise<void> {
  const { db } = await openReadable(cli, 'tables');
  const [event] = (await readEvents(db.pool, { ids: [id] }, 1)).events;
  if (event === undefined) throw await noSuchEvent({ db }, id);
  if (flags.json === true) return printJson(cli, event);
  print(cli, eventText(event));
}

export async function noSuchEvent({ db }: Pick<Context, 'db'>, id: string): Promise<PipelineError> {
  const { events } = await readEvents(db.pool, {}, 100_000);
  const isSymbol = events.some(({ symbol }) => symbol === id.toUpperCase());
  const guess = isSymbol
    ? `, but there are events of this symbol ("eod events ${id}")`
    : didYouMean(
        id,
        events.map((event) => event.id),
      );
  return usageError(`there is no event "${id}"${guess} ("eod events" lists them)`);
}
