import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  // The tables of the schema `market` are declared by the operation files themselves.
  schema: [
    './src/load/state/schema/*.ts',
    './src/operations/table.ts',
    './src/operations/Get*.ts',
    './src/operations/tables/*.ts',
  ],
  out: './migrations',
  schemaFilter: ['etl', 'market', 'market_history'],
  migrations: { schema: 'etl', table: 'migrations' },
});
