// What drizzle-kit compares with migrations/: every table that an operation or a file fills, with its history.
// CommonJS, because drizzle-kit reads the exports of a module, and an ES module cannot compute the names of its
// exports.
const { readdirSync } = require('node:fs');
const { join } = require('node:path');
const { drizzleTables, market, marketHistory } = require('./drizzle-tables.ts');

const OPERATIONS = join(__dirname, '../../../operations');
const declaredIn = (folder, name) =>
  readdirSync(join(OPERATIONS, folder))
    .filter((file) => name.test(file))
    .flatMap((file) => require(join(OPERATIONS, folder, file)).default.shapes.map(({ table }) => table));
const definitions = [...declaredIn('.', /^Get\w+\.ts$/), ...declaredIn('files', /^[A-Z]\w+\.ts$/)];

module.exports = Object.fromEntries(
  [market, marketHistory, ...[...new Set(definitions)].flatMap(drizzleTables)].entries(),
);
