// A peer: the upsert that a careful engineer writes by hand. One array a column, so that the statement is
// prepared once whatever the number of rows; a row that says nothing new is not written.
import { Pool } from 'pg';
import { CONNECTIONS, forEachBatch } from './batches.ts';
import { fields, KEY, sqlType } from './rows.ts';

const BATCH = 5_000;
const [url, folder] = process.argv.slice(2) as [string, string];

const columns = fields.map(({ column }) => column);
const values = columns.filter((column) => !(KEY as readonly string[]).includes(column));
const UPSERT = `insert into peers.bhavcopy_cm as stored (${columns.join(', ')})
select * from unnest(${fields.map((field, at) => `$${at + 1}::${sqlType(field)}[]`).join(', ')})
on conflict (${KEY.join(', ')}) do update set ${values.map((column) => `${column} = excluded.${column}`).join(', ')}
where (${values.map((column) => `stored.${column}`).join(', ')})
  is distinct from (${values.map((column) => `excluded.${column}`).join(', ')})`;

const pool = new Pool({ connectionString: url, max: CONNECTIONS });
await forEachBatch(folder, BATCH, (rows) =>
  pool.query({
    name: 'upsert',
    text: UPSERT,
    values: columns.map((column) => rows.map((row) => row[column])),
  }),
);
await pool.end();
