import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: ['./src/state/schema/*.ts', './src/load/schema/drizzle-kit-input.cjs'],
  out: './migrations',
  schemaFilter: ['etl', 'market', 'market_history'],
  migrations: { schema: 'etl', table: 'migrations' },
});
