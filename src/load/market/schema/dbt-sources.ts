import pg, { type Pool } from 'pg';
import type { Config } from '../../../core/config.ts';
import { usageError } from '../../../core/errors.ts';
import {
  type ExchangeSettings,
  exchangesOf,
  expectedVariants,
  isQuarterly,
  type Operation,
  QUARTER_AWAITED_DAYS,
} from '../../../operations/operation.ts';
import { operations, tables } from '../../../operations/registry.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import { readCatalog } from './catalog.ts';

/** dbt warns or fails if the newest session ended this many days ago; four days without one are usual at weekends. */
const DAILY = { warn: 5, error: 8 };
const WEEKLY = { warn: 10, error: 17 };
/** A quarter is the newest until the next one has ended. */
const QUARTERLY = { warn: QUARTER_AWAITED_DAYS + DAILY.warn, error: QUARTER_AWAITED_DAYS + DAILY.error };

type Settings = ExchangeSettings & Pick<Config, 'EOD_TIMEZONE'>;

/** The tables and views of `market` as sources for dbt 1.10 or newer: their comments, keys and freshness. */
export async function dbtSources(pool: Pool, config: Settings): Promise<object> {
  const rows = await readCatalog(pool);
  if (rows.length === 0) throw usageError('there are no tables yet', 'migrate');
  return {
    version: 2,
    sources: [
      {
        name: 'market',
        description:
          'End-of-day data of the Indian exchanges: what the source lists now, one table per data set.',
        schema: 'market',
        tables: rows.map(({ name, comment, columns }) => {
          const table = tables.find((one) => one.name === name);
          return {
            name,
            ...(comment === null ? {} : { description: comment }),
            ...(table === undefined
              ? {}
              : { config: freshness(table, config), data_tests: [uniqueKey(table)] }),
            columns: columns.map((column) => ({
              name: column.name,
              ...(column.comment === null ? {} : { description: column.comment }),
              data_type: column.type,
              ...(table?.key.includes(column.name) === true ? { data_tests: ['not_null'] } : {}),
            })),
          };
        }),
      },
    ],
  };
}

/** dbt's own test `unique` on a row value of the key columns: for several columns dbt would need a package. */
function uniqueKey({ key }: TableDefinition): object {
  return { unique: { name: `unique_${key.join('_')}`.slice(0, 60), column_name: `(${key.join(', ')})` } };
}

/**
 * The end of the newest complete day of `etl.completeness`, of the exchange that is furthest behind; for data without
 * days, of the day on which it was last requested. The time at which rows were written says nothing: a file about an
 * old day is written today, and a response that changes nothing writes no row. If days without records are normal, a
 * day that was requested without a result is complete.
 */
function freshness(table: TableDefinition, config: Settings): object {
  const [filling] = operations.filter(({ shapes }) => shapes.some((shape) => shape.table === table));
  if (filling === undefined) return { freshness: null };
  const exchanges = exchangesOf(filling, config);
  if (exchanges.length === 0) return { freshness: null };
  const { warn, error } = limitsOf(filling);
  const zone = pg.escapeLiteral(config.EOD_TIMEZONE);
  const list = exchanges.map((value) => pg.escapeLiteral(value)).join(', ');
  const day = expectedVariants(filling) === null ? `(c.checked_at at time zone ${zone})::date` : 'c.day';
  const isThere = filling.emptyIsNormal
    ? "(c.state = 'complete' or c.state = 'pending' and c.checked_at is not null)"
    : "c.state = 'complete'";
  const newest = `select max(${day}) from etl.completeness c where c.operation = ${pg.escapeLiteral(filling.name)} and c.exchange = e.exchange and ${isThere}`;
  return {
    loaded_at_query: `select case when bool_and(day is not null) then least(now(), (min(day) + 1)::timestamp at time zone ${zone}) end from (select (${newest}) as day from unnest(array[${list}]) as e (exchange)) newest`,
    freshness: {
      warn_after: { count: warn, period: 'day' },
      error_after: { count: error, period: 'day' },
    },
  };
}

function limitsOf(operation: Operation) {
  if (isQuarterly(operation)) return QUARTERLY;
  return operation.schedule.on === 'daily' ? DAILY : WEEKLY;
}
