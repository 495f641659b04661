import { escapeIdentifier, type Pool } from 'pg';
import type { Day, DayRange } from '../../core/days.ts';
import type { TableDefinition } from '../../operations/table.ts';
import { COVERAGE } from '../state/coverage/coverage.ts';
import type { CoverageState } from '../state/registers.ts';

/** A request that a stored row gives rise to. */
interface RowRequest {
  readonly instrument: string;
  /** The values of the request's parameters, in the order of the columns. */
  readonly values: readonly string[];
  readonly day: Day;
}

/** The requests that stored rows give rise to and that are still to be made. */
export interface RowRequests {
  /** The newest first. */
  readonly requests: readonly RowRequest[];
  /** True if there are more than are returned. */
  readonly more: boolean;
  /** True if there is any row, whether its request is covered or not. */
  readonly hasRows: boolean;
  /** Why the rows cannot be read, if the declaration is wrong. */
  readonly problem?: string;
}

/** Which rows are looked at, and which requests about them are covered. */
export interface RowScope {
  readonly table: TableDefinition;
  /** The columns with the instrument, with the parameters, and with the day if there is one. */
  readonly columns: {
    readonly instrument: string;
    readonly values: readonly string[];
    readonly day?: string | undefined;
  };
  /** The operation that requests. */
  readonly operation: string;
  readonly exchange: string;
  /** Empty: those of all rows. */
  readonly instruments: readonly string[];
  /** The only values that some parameters may have, by column. */
  readonly only: Readonly<Record<string, string>>;
  /** Only requests about these days; null: about any. */
  readonly days: DayRange | null;
  /** States in which a request is covered; none: everything is requested again. */
  readonly covered: readonly CoverageState[];
  readonly timeZone: string;
}

/** The variant by which coverage distinguishes the requests about an instrument and day. */
export const rowVariant = (values: readonly string[]): string => values.join('/');

/**
 * A run makes at most this many requests, so that the plan of one stays small; the next run requests those that are
 * left.
 */
export const MOST_ROW_REQUESTS = 50_000;

/**
 * Reads what the stored rows of a table give rise to: one request for each instrument, parameters and day. A request
 * is covered if it was requested after its row last changed.
 */
export async function readRowRequests(
  pool: Pool,
  scope: RowScope,
  most = MOST_ROW_REQUESTS,
): Promise<RowRequests> {
  const { columns, operation, exchange, instruments, only, days, covered, timeZone } = scope;
  const column = (name: string) => `t.${escapeIdentifier(name)}`;
  const parameters: unknown[] = [];
  const bind = (value: unknown): string => `$${parameters.push(value)}`;
  const zone = bind(timeZone);
  const changedAt = 'max(t.last_changed_at)';
  const day = columns.day === undefined ? null : dayOf(scope.table, columns.day, column(columns.day), zone);
  const needed = [columns.instrument, ...columns.values];
  const conditions = [
    // Every parameter has to be used, and only some days need the zone.
    `${zone}::text is not null`,
    `t.exchange = ${bind(exchange)}`,
    ...needed.map((name) => `nullif(${column(name)}::text, '') is not null`),
    ...(day === null ? [] : [`${day} is not null`]),
    ...(instruments.length === 0
      ? []
      : [`${column(columns.instrument)}::text = any(${bind(instruments)}::text[])`]),
    ...Object.entries(only).map(([name, value]) => `${column(name)}::text = ${bind(value)}`),
  ].join(' and ');
  const rows = `from market.${escapeIdentifier(scope.table.name)} t where ${conditions}`;
  const storedParameters = [...parameters];
  const isOpen = [
    ...(days === null ? [] : [`q.day between ${bind(days.from)}::date and ${bind(days.to)}::date`]),
    `not exists (
        select from ${COVERAGE} c
         where c.operation = ${bind(operation)} and c.exchange = ${bind(exchange)} and c.day = q.day and c.instrument = q.instrument
           and c.variant = array_to_string(q.params, '/') and c.state = any(${bind(covered)}::text[]) and c.checked_at >= q.changed_at)`,
  ].join(' and ');
  const found = await pool.query<{ instrument: string; values: string[]; day: string }>(
    `select q.instrument, q.params as values, to_char(q.day, 'YYYY-MM-DD') as day
       from (select ${column(columns.instrument)}::text as instrument,
                    array[${columns.values.map((name) => `${column(name)}::text`).join(', ')}]::text[] as params,
                    ${day ?? `(${changedAt} at time zone ${zone})::date`} as day, ${changedAt} as changed_at
               ${rows} group by ${['1', '2', ...(day === null ? [] : ['3'])].join(', ')}) q
      where ${isOpen} order by q.day desc, q.instrument, q.params limit ${most + 1}`,
    parameters,
  );
  const requests = found.rows.slice(0, most);
  return {
    requests,
    more: found.rows.length > most,
    hasRows: requests.length > 0 || (await isAny(pool, rows, storedParameters)),
  };
}

async function isAny(pool: Pool, rows: string, parameters: readonly unknown[]): Promise<boolean> {
  const found = await pool.query<{ any: boolean }>(`select exists (select ${rows}) as any`, [...parameters]);
  return found.rows[0]?.any === true;
}

/** The day of a column, which may be a date-time. */
function dayOf({ fields }: TableDefinition, name: string, column: string, zone: string): string {
  const isTime = fields.find((field) => field.column === name)?.kind === 'datetime';
  return isTime ? `(${column} at time zone ${zone})::date` : `${column}::date`;
}
