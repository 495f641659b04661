import type { Config } from '../core/config.ts';
import { exchangeOfSegment } from '../core/exchanges.ts';
import type { NonEmpty } from '../core/iterables.ts';
import type {
  DataSet,
  FileWindows,
  Operation,
  Parts,
  Requested,
  RequestInput,
  RequestOption,
  Schedule,
  TableDefinition,
  WithShapes,
} from './declaration.ts';

export type {
  DataSet,
  InstrumentRequest,
  Operation,
  Parts,
  RequestInput,
  RequestOption,
  Schedule,
  Shape,
} from './declaration.ts';
export { GROUPS, SCHEDULED_WEEKDAYS } from './declaration-values.ts';

/** The operation whose data shows which days were trading days, and which instruments there are. */
export const BHAV_COPY = 'GetBhavCopyCM';

/** The value as the source spells it (in any case), or as it is where any is known; null if it is not a known one. */
export function knownOption({ values, form }: RequestOption, value: string): string | null {
  if (values !== undefined) {
    return values.find((spelling) => spelling.toLowerCase() === value.toLowerCase()) ?? null;
  }
  return form === undefined || new RegExp(`^(?:${form.pattern})$`).test(value) ? value : null;
}

/** The same, but other values than the known ones are sent as they are, unless the option is closed. */
export function spelledOption(option: RequestOption, value: string): string | null {
  const isOpen = option.values !== undefined && option.isClosed !== true;
  return knownOption(option, value) ?? (isOpen ? value : null);
}

/** The values of an option, in words: `H, L, …` or `a year such as 2024`; null if any value is as good. */
export function allowedText({ values, isClosed, form }: RequestOption): string | null {
  const others = isClosed === true ? [] : ['…'];
  return values === undefined ? (form?.description ?? null) : [...values, ...others].join(', ');
}

/** Begins the name of a parameter in a window that is sent as it is, because its operation does not declare it. */
const FURTHER = 'param:';

/** The name under which a parameter that no operation declares is kept with a window. */
export const furtherParam = (name: string): string => `${FURTHER}${name}`;

/** The parameters that are sent as they are, by the source's name. */
export function furtherParams(params: Readonly<Record<string, string>>): [name: string, value: string][] {
  return Object.entries(params)
    .filter(([name]) => name.startsWith(FURTHER))
    .map(([name, value]) => [name.slice(FURTHER.length), value]);
}

/**
 * How long after the end of a quarter its figures may still come, in days: about the length of the next quarter. Until
 * then an empty response does not mean that there are none.
 */
export const QUARTER_AWAITED_DAYS = 92;

/** When a schedule requests: `daily at 21:30`, `Sundays at 21:57`. */
export const scheduleText = ({ on, at }: Schedule): string =>
  `${on === 'daily' ? on : `${on[0]?.toUpperCase()}${on.slice(1)}s`} at ${at}`;

/** When the data of a day can be expected: the operation's own time, or EOD_PUBLISHED_AT if that is later. `HH:mm`. */
export function publicationTime({ publishedAt }: DataSet, earliest: string): string {
  return publishedAt > earliest ? publishedAt : earliest;
}

/** True if its data is expected for the last days of quarters, not for trading days. */
export function isQuarterly({ windows }: Pick<DataSet, 'windows'>): boolean {
  return windows.per === 'instrument' && windows.days === 'quarters';
}

/**
 * The requests without dates that are made instead of, or besides, those about days; undefined if there are none.
 */
export function partsOf({ windows }: Pick<DataSet, 'windows'>): Parts | undefined {
  return windows.per === 'range' ? windows.parts : undefined;
}

/** The variant of the request about a part. */
export const partVariant = ({ param }: Parts, value: string): string => `${param}/${value}`;

/** The variant of the request about days to come. */
export const AHEAD = 'ahead';

/** True if this is the variant of a request about a part. */
export function isPart(dataSet: Pick<DataSet, 'windows'>, variant: string): boolean {
  const parts = partsOf(dataSet);
  return parts !== undefined && variant.startsWith(partVariant(parts, ''));
}

/**
 * True if a response about several days has a number of records for each of them. If not, as of corporate actions, each of
 * these days counts all of its records.
 */
export function countsEachDay({ windows, shapes }: Pick<DataSet, 'windows' | 'shapes'>): boolean {
  return windows.per !== 'range' || shapes.every(({ dated }) => dated);
}

/** True if this request is sent with its days. */
export function isDated(
  { request }: Operation,
  requested: Pick<Requested, 'params' | 'instruments'>,
): boolean {
  return request.dates !== 'none' && (request.datedWhen?.(requested) ?? true);
}

/** True if each of its requests is about one or several instruments. */
export function isByInstrument({ windows }: Pick<DataSet, 'windows'>): boolean {
  return windows.per === 'instrument';
}

/** The variants of the requests about each day for which data is expected; null if none is expected for any day. */
export function expectedVariants(dataSet: Pick<DataSet, 'windows'>): string[] | null {
  const { windows } = dataSet;
  if (windows.per === 'once') return null;
  if (windows.per === 'instrument' && windows.days === 'none') return null;
  if (windows.per === 'file' && windows.days !== 'sessions') return null;
  // What is expected is the whole list, whatever has changed on single days.
  if (partsOf(dataSet) !== undefined) return null;
  if (windows.per !== 'instrument') return [''];
  return windows.requests(expectedDay()).map(({ variant }) => variant);
}

/** A day that is the last of a quarter, and also a trading day: what is requested for it stands for all days. */
export function expectedDay(): RequestInput {
  const day = '2025-03-31';
  return { tradingDays: [day], from: day, to: day, today: day, live: false, options: {} };
}

/** The service takes at most this many symbols in `instrumentIdentifiers`. */
export const MAX_INSTRUMENTS_PER_CALL = 25;

/** What a data set that files fill declares. By default its files are lists, which say nothing of single days. */
type FileSet = Pick<DataSet, 'name' | 'title' | 'group' | 'summary' | 'shapes'> &
  Partial<Pick<DataSet, 'emptyIsNormal'> & Pick<FileWindows, 'days'>>;

/** Declares a data set that is not requested from the source. A file is about a range of days and lists all it has. */
export function defineFileSet<const Tables extends Readonly<NonEmpty<TableDefinition>>>({
  days = 'none',
  emptyIsNormal = true,
  ...dataSet
}: WithShapes<FileSet, Tables>): WithShapes<DataSet, Tables> {
  return {
    ...dataSet,
    exchanges: [],
    request: { dates: 'range', instruments: 'none', dTFormat: false, options: [] },
    windows: { per: 'file', days },
    publishedAt: '00:00',
    schedule: null,
    emptyIsNormal,
    sample: null,
  };
}

/** The tables in which the records of responses are stored. */
export const tablesOfResponses = ({ shapes }: DataSet): TableDefinition[] => shapes.map(({ table }) => table);

/** All tables in which its records are stored, also those of imported files. */
export function tablesFilledBy(dataSet: DataSet): TableDefinition[] {
  return [...tablesOfResponses(dataSet), ...(dataSet.alsoInFiles ?? [])];
}

/** What a setting for single operations says of one: under its name, or that of its first table, in any case. */
export function settingFor<Value>(
  values: Readonly<Record<string, Value>>,
  { name, shapes }: Pick<DataSet, 'name' | 'shapes'>,
): Value | undefined {
  const under = (wanted: string) =>
    Object.entries(values).find(([typed]) => typed.toLowerCase() === wanted.toLowerCase())?.[1];
  return under(name) ?? under(shapes[0].table.name);
}

/** The settings that say which exchanges are requested. */
export type ExchangeSettings = Pick<Config, 'EOD_EXCHANGES'> &
  Partial<Pick<Config, 'EOD_OPERATION_EXCHANGES'>>;

/**
 * The exchanges an operation is requested for when the user names none: those of EOD_OPERATION_EXCHANGES, or its own,
 * limited to EOD_EXCHANGES, where a segment is taken as the exchange that runs it.
 */
export function exchangesOf(operation: Operation, config: ExchangeSettings): readonly string[] {
  const settingExchanges = settingFor(config.EOD_OPERATION_EXCHANGES ?? {}, operation);
  if (settingExchanges !== undefined) return settingExchanges;
  return operation.exchanges.filter((exchange) => config.EOD_EXCHANGES.includes(exchangeOfSegment(exchange)));
}
