import type { Calendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { addDays, type Day, dayStart } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import { buildUrl, type Variation } from '../../extract/index.ts';
import type { Requested } from '../../operations/fields.ts';
import { exchangesOf, isByInstrument, type Operation } from '../../operations/operation.ts';
import { operations } from '../../operations/registry.ts';
import { dateParams } from '../../operations/request-parameters.ts';

/** A call whose response is evaluated. */
export interface PlannedCall {
  /** What evaluations find its response by. */
  readonly name: string;
  readonly purpose: string;
  readonly operation: Operation;
  readonly requested: Requested;
  readonly variation: Variation;
  /** Where it may be requested instead, if the key has no right to that exchange. */
  readonly otherExchanges: readonly string[];
}

/** The days that are requested. */
export interface ProbedDays {
  /** The last session, or the trial day. */
  readonly day: Day;
  /** The session before it. */
  readonly before: Day;
  readonly today: Day;
}

/** A company that every source of this data knows; its responses are short. */
const INSTRUMENT = 'TCS';

/** The longest range that a service of this kind is known to serve. */
const MONTH = 29;

const NOON = 12 * 3600;

/** The operations that are requested in several ways, by what they are about. */
const PRICES = 'GetBhavCopyCM';
const RATIOS = 'GetFinancialRatios';
const CLASSIFICATION = 'GetSectoralClassification';

interface Way {
  readonly name: string;
  readonly purpose: string;
  readonly operation: string;
  readonly days?: (days: ProbedDays) => readonly [from: Day, to: Day];
  readonly instruments?: 'none' | 'one';
  readonly params?: Readonly<Record<string, string>>;
  /** By default JSON. */
  readonly variation?: Variation | ((days: ProbedDays, config: Config) => Variation | null);
  /** The position of its exchange among those of the operation. */
  readonly exchange?: number;
}

const prices = (name: string, purpose: string, more: Partial<Way> = {}): Way => ({
  name,
  purpose,
  operation: PRICES,
  ...more,
});
const ratios = (name: string, purpose: string, more: Partial<Way> = {}): Way => ({
  name,
  purpose,
  operation: RATIOS,
  params: { type: 'Quarter', period: 'Latest', natureOfReport: 'Standalone' },
  ...more,
});
const month = ({ day }: ProbedDays): readonly [Day, Day] => [addDays(day, -MONTH), day];

/** What is requested, in the order of what it settles; every other enabled operation is requested once after that. */
const WAYS: readonly Way[] = [
  prices('prices', 'keys, blank fields, content type'),
  prices('prices before', 'whether another day is another response', {
    days: ({ before }) => [before, before],
  }),
  prices('prices in CSV', 'columns and values of CSV', { variation: { format: 'Csv' } }),
  prices('prices in XML', 'elements and values of XML', { variation: { format: 'Xml' } }),
  prices('prices in Epoch', 'the unit of times', { variation: { format: 'Json', dateFormat: 'Epoch' } }),
  prices('prices spelled otherwise', 'names of parameters in another case', {
    variation: { format: 'Json', spell: (name) => name.toUpperCase() },
  }),
  prices('prices until noon', 'whether hours count', {
    variation: ({ day }, { EOD_DATE_DIALECT: dialect, EOD_TIMEZONE: zone }) =>
      dialect === 'epoch' ? { format: 'Json', values: { to: String(dayStart(day, zone) + NOON) } } : null,
  }),
  prices('prices of two days', 'whether a range includes both of its days', {
    days: ({ before, day }) => [before, day],
  }),
  ratios('ratios', 'form and keys of ratios'),
  ratios('ratios in CSV', 'digits of numbers', { variation: { format: 'Csv' } }),
  {
    name: 'daily ratios',
    purpose: 'whether it is still offered',
    operation: 'GetFinRatioEOD',
    params: { natureOfReport: 'Standalone' },
  },
  {
    name: 'ratio snapshot',
    purpose: 'whether it is still offered',
    operation: 'GetFinRatioSnapshot',
    params: { natureOfReport: 'Standalone' },
  },
  {
    name: 'actions',
    purpose: 'what days select, ids and codes',
    operation: 'GetCorporateActions',
    days: month,
    instruments: 'none',
  },
  {
    name: 'classification',
    purpose: 'a company without days',
    operation: CLASSIFICATION,
  },
  {
    name: 'classification of a day',
    purpose: 'the same company with days',
    operation: CLASSIFICATION,
    variation: ({ day }, { EOD_DATE_DIALECT: dialect, EOD_TIMEZONE: zone }) => {
      const edges = dialect === 'iso-date' ? [day, day] : [dayStart(day, zone), dayStart(day, zone) + 86_399];
      const names = dateParams({ request: { dates: 'range' } } as Operation, dialect);
      return {
        format: 'Json',
        values: Object.fromEntries(names.map((name, at) => [name, String(edges[at])])),
      };
    },
  },
  {
    name: 'series changes',
    purpose: 'ids of securities that change their series',
    operation: 'GetSeriesChange',
    days: month,
    instruments: 'none',
  },
];

/** Last, because it shows only what the key may do. */
const OTHER_EXCHANGE = prices('prices of the other exchange', 'whether the key may request it', {
  exchange: 1,
});

/** The calls in the order in which they are made. */
export function planCalls(config: Config, days: ProbedDays): PlannedCall[] {
  const named = new Set(WAYS.map(({ operation }) => operation));
  const others = operations
    .filter(({ name }) => !named.has(name))
    .map(
      ({ name }): Way => ({
        name,
        purpose: 'form of its response',
        operation: name,
      }),
    );
  return [...WAYS, ...others, OTHER_EXCHANGE].flatMap((way) => plannedCall(way, config, days));
}

/** One session of prices, as a request for how far back the source goes. */
export function historyCall(
  config: Config,
  days: ProbedDays,
  calendar: Calendar,
  age: number,
): PlannedCall[] {
  const way = prices('history', `whether ${age} days back are served`, {
    days: ({ day }) => {
      const [session = day] = calendar.lastSessions('NSE', addDays(day, -age), 1);
      return [session, session];
    },
  });
  return plannedCall(way, config, days);
}

function plannedCall(way: Way, config: Config, days: ProbedDays): PlannedCall[] {
  const operation = operations.find(({ name }) => name === way.operation);
  if (operation === undefined) return [];
  const [exchange, ...otherExchanges] = exchangesOf(operation, config).slice(way.exchange ?? 0);
  if (exchange === undefined) return [];
  const { variation = { format: 'Json' } } = way;
  const varied = typeof variation === 'function' ? variation(days, config) : variation;
  if (varied === null) return [];
  const [from, to] = way.days?.(days) ?? [days.day, days.day];
  const takes = operation.request.instruments !== 'none' && way.instruments !== 'none';
  const requested: Requested = {
    exchange,
    from,
    to,
    instruments: takes ? [config.EOD_INSTRUMENTS?.[0] ?? INSTRUMENT] : [],
    params: way.params ?? paramsOf(operation, days),
    calledOn: days.today,
  };
  const { name, purpose } = way;
  const call = { name, purpose, operation, requested, variation: varied, otherExchanges };
  return canBeSent(call, config) ? [call] : [];
}

/** The parameters that a night would send. */
function paramsOf(operation: Operation, { day, today }: ProbedDays): Readonly<Record<string, string>> {
  const { windows } = operation;
  if (windows.per === 'once') return windows.requests?.(today)[0] ?? {};
  if (windows.per !== 'instrument') return {};
  const input = { sessions: [day], from: day, to: day, today, live: true, options: {} };
  return windows.requests(input)[0]?.params ?? {};
}

/** False if the operation has no request for these days, or one only for rows of another operation. */
function canBeSent({ operation, requested }: PlannedCall, config: Config): boolean {
  if (operation.windows.per === 'row') return false;
  if (isByInstrument(operation) && requested.instruments.length === 0) return false;
  const settings = {
    baseUrl: '',
    accessKey: '',
    dateDialect: config.EOD_DATE_DIALECT,
    dateFormat: config.EOD_DATE_FORMAT,
    format: config.EOD_FORMAT,
    timeZone: config.EOD_TIMEZONE,
  };
  try {
    buildUrl(settings, operation, requested);
    return true;
  } catch (error) {
    if (error instanceof PipelineError) return false;
    throw error;
  }
}
