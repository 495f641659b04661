import { type Day, type DayRange, isDay } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import { EXCHANGE_CODES, type Pair } from '../../core/exchanges.ts';
import type { KnownYears } from '../../jobs/runs/read-coverage.ts';
import { coveredSets, namedBy } from '../../operations/registry.ts';
import type { Requested } from '../page.tsx';

// These functions read what an address names. Their errors are shown as a page.

/** The data set. @throws PipelineError `usage` if there is no such data set. */
export function readPair({ params }: Requested): Pair {
  const { operation = '', exchange = '' } = params;
  const dataSet = namedBy(coveredSets, operation);
  const known = dataSet !== undefined && [...EXCHANGE_CODES, ...dataSet.exchanges].includes(exchange);
  if (!known) throw usageError(`there is no data set ${operation} ${exchange}`);
  return { operation: dataSet.name, exchange };
}

/** The day. @throws PipelineError `usage` if it is not a day. */
export function readDay({ params }: Requested): Day {
  const { day = '' } = params;
  if (!isDay(day)) throw usageError(`"${day}" is not a day such as 2025-02-27`);
  return day;
}

/** The number of a run. @throws PipelineError `usage` if it is not a number. */
export function readRunId({ params }: Pick<Requested, 'params'>): number {
  const { id = '' } = params;
  if (!/^[1-9]\d{0,14}$/.test(id)) throw usageError(`there is no ${id}`);
  return Number(id);
}

/** The requested year, if it is a known one; else the latest with data. */
export function chooseYear({ query }: Requested, { years, latest }: KnownYears): number {
  const requested = Number(query.get('year'));
  return years.includes(requested) ? requested : (latest ?? years[0] ?? Number.NaN);
}

export const rangeOfYear = (year: number): DayRange => ({ from: `${year}-01-01`, to: `${year}-12-31` });
