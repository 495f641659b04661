import type { Command } from 'commander';
import { type PipelineError, usageError } from '../../core/errors.ts';
import { didYouMean } from '../../core/input.ts';
import type { Context } from '../../jobs/context.ts';
import type { EventFilter, StoredEvent } from '../../load/market/corporate-events.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson } from '../cli.ts';
import {
  addRange,
  exampleDays,
  examples,
  exchangeOption,
  jsonOption,
  limitOption,
  listOf,
  noSuchVerb,
  parseChoices,
  parseExchanges,
  parseOpenRange,
  type RangeFlags,
} from '../options.ts';
import { count, plural } from '../output.ts';

interface ListFlags extends RangeFlags, JsonFlag {
  readonly status?: string;
  readonly kind?: string;
  readonly symbol?: string;
  readonly exchange?: string;
  readonly limit: number;
}

interface SetFlags extends JsonFlag {
  readonly factor?: string;
  readonly ignore?: boolean;
  readonly reset?: boolean;
}

export const STATUSES = ['applied', 'needs_review', 'ignored'] as const;

export const commands: Commands = {
  events(command, cli) {
    const { from } = exampleDays();
    command.addHelpText(
      'after',
      examples(
        'eod events --status needs_review',
        'eod events --symbol BAJAJFINSV',
        `eod events NSE:VEEDOL:${from}:bonus`,
        `eod events set NSE:VEEDOL:${from}:bonus --factor 1:2`,
        `eod events set NSE:ITC:${from}:demerger --ignore`,
      ),
    );
    const list = listOf(command, 'the id of an event')
      .argument('[id]', 'id of an event, to show that one')
      .option('--status <list>', 'only events with these states: applied, needs_review, ignored')
      .option('--kind <list>', 'only these kinds, e.g. split,bonus')
      .option('--symbol <symbol>', 'only events of the share that has or had this symbol')
      .addOption(exchangeOption());
    addRange(list, {
      from: 'only ex-dates from this day on, YYYY-MM-DD',
      to: 'only ex-dates up to this day, YYYY-MM-DD',
    })
      .addOption(limitOption(100))
      .addOption(jsonOption('a list of events'))
      .action((id: string | undefined, flags: ListFlags) =>
        id === undefined ? listEvents(cli, flags) : showEvent(cli, command, id, flags),
      );
    command
      .command('set')
      .description(
        'Decide by hand what an event does to prices. The decision is kept when lists are imported again.',
      )
      .argument('<id>', 'the id of the event, from "eod events"')
      .option('--factor <a:b>', 'multiply earlier prices by a ÷ b: 1:2 halves them')
      .option('--ignore', 'the event does not change prices')
      .option('--reset', 'undo the decision')
      .addOption(jsonOption('the event'))
      .action((id: string, flags: SetFlags) => setEvent(cli, id, flags));
  },
};

async function listEvents(cli: Cli, flags: ListFlags): Promise<void> {
  const { EVENT_KINDS } = await import('../../extract/corporate-actions/purpose.ts');
  const { from, to } = parseOpenRange(flags);
  const { status, kind, symbol } = flags;
  const filter: EventFilter = {
    statuses: status === undefined ? undefined : parseChoices('--status', status, STATUSES, 'status'),
    kinds: kind === undefined ? undefined : parseChoices('--kind', kind, EVENT_KINDS, 'kind'),
    exchanges: parseExchanges(flags.exchange),
    symbol: symbol?.trim().toUpperCase(),
    from,
    to,
  };
  const { openReadable } = await import('../open-context.ts');
  const stored = await import('../../load/market/corporate-events.ts');
  const { db } = await openReadable(cli, 'tables');
  const { total, events } = await stored.listEvents(db.pool, filter, flags.limit);
  if (flags.json === true) return printJson(cli, events);
  if (total === 0) return print(cli, 'no corporate event matches; "eod import" loads lists of the exchanges');
  print(cli, events.map(eventText).join('\n'));
  print(
    cli,
    `\n${plural(total, 'event')}${total > events.length ? `, the newest ${count(events.length)} listed; --limit shows more` : ''}`,
  );
}

/** An event for people: its id and effect on one line, what the exchange's list says below. */
function eventText(event: StoredEvent): string {
  const { id, exchange, ratio, priceFactor, amount, status, statusReason, purpose, listedBy } = event;
  const effect = [
    ratio === null
      ? null
      : `${ratio.replace(':', ' shares for ')}, prices × ${Number(priceFactor)
          .toPrecision(6)
          .replace(/\.?0+$/, '')}`,
    amount === null ? null : `Rs ${amount}`,
    status,
  ];
  const source = listedBy === null || listedBy === exchange ? null : `only ${listedBy} lists it`;
  const notes = [purpose, source, statusReason].filter((text) => text !== null && text !== '');
  return [`${id}  ${effect.filter(Boolean).join('  ')}`, ...notes.map((text) => `    ${text}`)].join('\n');
}

async function showEvent(cli: Cli, command: Command, id: string, flags: JsonFlag): Promise<void> {
  // An id has the exchange, the symbol, the day and the kind.
  if (!id.includes(':')) throw noSuchVerb(command, 'the id of an event', id);
  const { openReadable } = await import('../open-context.ts');
  const stored = await import('../../load/market/corporate-events.ts');
  const { db } = await openReadable(cli, 'tables');
  const [event] = (await stored.listEvents(db.pool, { id }, 1)).events;
  if (event === undefined) throw await noSuchEvent({ db }, id);
  if (flags.json === true) return printJson(cli, event);
  print(cli, eventText(event));
}

async function noSuchEvent({ db }: Pick<Context, 'db'>, id: string): Promise<PipelineError> {
  const { listEvents: find } = await import('../../load/market/corporate-events.ts');
  const { events } = await find(db.pool, {}, 100_000);
  const guess = didYouMean(
    id,
    events.map((one) => one.id),
  );
  return usageError(`there is no event "${id}"${guess} ("eod events" lists them)`);
}

async function setEvent(cli: Cli, id: string, flags: SetFlags): Promise<void> {
  const chosen = [flags.factor !== undefined, flags.ignore === true, flags.reset === true];
  if (chosen.filter(Boolean).length !== 1) throw usageError('give one of --factor, --ignore and --reset');
  const ratio = flags.factor === undefined ? null : await parseFactor(flags.factor);
  const { openContext } = await import('../open-context.ts');
  const { decideEvent } = await import('../../jobs/events/decide-event.ts');
  const context = await openContext(cli);
  const event = await decideEvent(context, id, flags.reset === true ? 'reset' : ratio);
  if (event === null) throw await noSuchEvent(context, id);
  if (flags.json === true) return printJson(cli, event);
  print(cli, eventText(event));
}

/** Reads `a:b` as a ratio of shares, new for old: the inverse of the factor for prices. */
async function parseFactor(text: string): Promise<{ readonly new: number; readonly old: number }> {
  const { ratioOfFactor } = await import('../../jobs/events/decide-event.ts');
  const ratio = ratioOfFactor(text);
  if (ratio !== null) return ratio;
  throw usageError(`--factor: "${text}" is not two whole numbers above 0, such as 1:2, which halves prices`);
}
