import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: ['./src/load/state/schema/*.ts', './src/load/market/schema/drizzle-kit-input.cjs'],
  out: './migrations',
  schemaFilter: ['etl', 'market', 'market_history'],
  migrations: { schema: 'etl', table: 'migrations' },
});
