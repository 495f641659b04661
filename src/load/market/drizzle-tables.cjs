// What drizzle-kit compares with migrations/: every table that an operation fills, with its history. It is CommonJS because
// drizzle-kit takes what a module exports, and the exports of an ES module cannot be listed while it runs.
const { readdirSync } = require('node:fs');
const { join } = require('node:path');
const { drizzleTables, market, marketHistory } = require('./drizzle-tables.ts');

const OPERATIONS = join(__dirname, '../../operations');
const definitions = readdirSync(OPERATIONS)
  .filter((name) => /^Get\w+\.ts$/.test(name))
  .flatMap((name) => require(join(OPERATIONS, name)).default.shapes.map(({ table }) => table));

module.exports = Object.fromEntries(
  [market, marketHistory, ...[...new Set(definitions)].flatMap(drizzleTables)].entries(),
);
