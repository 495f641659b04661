// What drizzle-kit compares with migrations/: every table of a data set, with its history.
// CommonJS, because drizzle-kit reads the exports of a module, and an ES module cannot compute the names of its
// exports.
const { dataSets } = require('../../operations/index.ts');
const { tablesFilledBy } = require('../../declaration/operation.ts');
const { drizzleTables, market, marketHistory } = require('../../declaration/drizzle-tables.ts');

const tables = new Set(dataSets.flatMap(tablesFilledBy));

module.exports = Object.fromEntries([market, marketHistory, ...[...tables].flatMap(drizzleTables)].entries());
