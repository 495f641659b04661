import type { Pool } from 'pg';
import type { Config } from '../../core/config.ts';
import { usageError } from '../../core/errors.ts';
import { exchangesOf, type Operation } from '../../operations/operation.ts';
import { operations, tables } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import { COVERAGE } from '../state/coverage.ts';
import { readCatalog } from './catalog.ts';

/** After so many days without an answer dbt warns, or fails: a weekend and a holiday are none. */
const DAILY = { warn: 4, error: 7 };
const WEEKLY = { warn: 10, error: 17 };

/** The tables and views of `market` as sources of dbt, 1.10 or newer: what they mean, their keys, and how fresh they are. */
export async function dbtSources(pool: Pool, config: Pick<Config, 'EOD_EXCHANGES'>): Promise<object> {
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

/** The test `unique` of dbt itself, of a row made of the key: a package would be needed for several columns. */
function uniqueKey({ key }: TableDefinition): object {
  return { unique: { name: `unique_${key.join('_')}`.slice(0, 60), column_name: `(${key.join(', ')})` } };
}

/**
 * When the source was last asked with success, of the exchange where that is longest ago: rows that come again as they
 * are write nothing, so no column of the table tells.
 */
function freshness(table: TableDefinition, config: Pick<Config, 'EOD_EXCHANGES'>): object {
  const [filling] = operations.filter(({ shapes }) => shapes.some((shape) => shape.table === table));
  if (filling === undefined) return { freshness: null };
  const exchanges = exchangesOf(filling, config);
  if (exchanges.length === 0) return { freshness: null };
  const { warn, error } = limitsOf(filling);
  const values = exchanges.map((exchange) => `('${exchange}')`).join(', ');
  return {
    loaded_at_query: `select case when bool_and(latest is not null) then min(latest) end from (select max(c.checked_at) as latest from (values ${values}) e (exchange) left join ${COVERAGE} c on c.exchange = e.exchange and c.operation = '${filling.name}' and c.state in ('loaded', 'empty') group by e.exchange) asked`,
    freshness: {
      warn_after: { count: warn, period: 'day' },
      error_after: { count: error, period: 'day' },
    },
  };
}

const limitsOf = ({ schedule }: Operation) => (schedule.on === 'daily' ? DAILY : WEEKLY);
