import { isSnakeCase, nameProblems } from './column-names.ts';
import { either, isObject, isText, type Problems, shown, type Unchecked } from './declaration-problems.ts';
import { SQL_TYPES } from './fields.ts';
import { LOAD_AUDIT, SOURCE_AUDIT, VALIDITY } from './table.ts';
import { VIEWS } from './views.ts';

const SHAPE_NAMES = [
  'table',
  'has',
  'hasOneOf',
  'namedBy',
  'symbolColumn',
  'dated',
  'contradiction',
  'exchangeColumn',
  'fullSet',
];

const FULL_SETS = ['days', 'exchange', 'none'];
const RESERVED = [...Object.keys(LOAD_AUDIT), ...Object.keys(VALIDITY)];

/** Postgres shortens longer names. */
const LONGEST_COLUMN = 63;
const LONGEST_TABLE = 50;

/** The shapes of an operation, and their tables. */
export function checkShapes(shapes: unknown, problems: Problems): void {
  const remedy = 'list at least one, { table, has, dated, fullSet }';
  if (!problems.check(Array.isArray(shapes) && shapes.length > 0, 'shapes', shapes, remedy)) return;
  (shapes as readonly unknown[]).forEach((shape, at) => {
    const path = `shapes[${at}]`;
    if (problems.check(isObject(shape), path, shape, 'use { table, has, dated, fullSet }')) {
      checkShape(shape as Unchecked, path, problems);
    }
  });
}

function checkShape(shape: Unchecked, path: string, problems: Problems): void {
  problems.onlyKnown(shape, path, SHAPE_NAMES);
  problems.oneOf(shape, path, 'fullSet', FULL_SETS);
  problems.boolean(shape, path, 'dated');
  const { table, dated, fullSet, contradiction } = shape;
  if (fullSet === 'days' && dated === false) {
    problems.error(
      `${path}.fullSet is "days" of records without a day: set dated to true, or fullSet to none`,
    );
  }
  if (contradiction !== undefined) {
    problems.check(
      typeof contradiction === 'function',
      `${path}.contradiction`,
      contradiction,
      'use a function, or leave it out',
    );
  }
  if (
    !problems.check(
      isObject(table),
      `${path}.table`,
      table,
      'use defineTable({ name, comment, key, fields })',
    )
  )
    return;
  const columns = checkTable(table as Unchecked, `${path}.table`, problems);
  checkSources(shape, path, columns, problems);
  if (dated === true && columns.length > 0 && !isText((table as Unchecked).dateColumn)) {
    problems.error(
      `${path}.dated is true, but the key has no date: add a date column to it, or set dated to false`,
    );
  }
  for (const name of ['symbolColumn', 'exchangeColumn']) {
    const column = shape[name];
    if (column === undefined) continue;
    const isKnown = columns.some((one) => one.column === column);
    problems.check(isKnown, `${path}.${name}`, column, `use a column of the table: ${namesOf(columns)}`);
  }
}

/** The tables that an operation fills besides those of its shapes. */
export function checkFurtherTables({ also, alsoInFiles }: Unchecked, problems: Problems): void {
  const isTable = (reading: unknown) => isObject(reading) && isObject((reading as Unchecked).table);
  if (also !== undefined && problems.check(isTable(also), 'also', also, 'use readFrom(table, { … })'))
    checkTable((also as { readonly table: Unchecked }).table, 'also.table', problems);
  if (alsoInFiles === undefined) return;
  const areTables = Array.isArray(alsoInFiles) && alsoInFiles.every(isObject);
  if (
    !problems.check(areTables, 'alsoInFiles', alsoInFiles, 'list tables, as defineTable({ … }) returns them')
  )
    return;
  for (const [at, table] of (alsoInFiles as readonly Unchecked[]).entries())
    checkTable(table, `alsoInFiles[${at}]`, problems);
}

/** What tells a record by its source fields. */
function checkSources(
  shape: Unchecked,
  path: string,
  columns: readonly Unchecked[],
  problems: Problems,
): void {
  const sources = columns.flatMap(({ source, orElse }) => [source, ...(Array.isArray(orElse) ? orElse : [])]);
  const plain = new Set(sources.filter(isText).map(plainField));
  for (const name of ['has', 'hasOneOf', 'namedBy']) {
    const value = shape[name];
    if (value === undefined && name !== 'has') continue;
    const mayBeEmpty = name === 'has' && shape.hasOneOf !== undefined;
    const isList = Array.isArray(value) && (mayBeEmpty || value.length > 0) && value.every(isText);
    const remedy = 'list fields of the source, in quotes, that every such record has';
    if (!problems.check(isList, `${path}.${name}`, value, remedy) || columns.length === 0) continue;
    for (const field of value as readonly string[]) {
      if (!plain.has(plainField(field))) {
        problems.error(
          `${path}.${name} names ${shown(field)}, which no field of the table reads: correct the name`,
        );
      }
    }
  }
}

/** A field's name as it is compared with those of records. */
export const plainField = (name: string): string => name.toLowerCase().replace(/[\s_-]+/g, '');

const namesOf = (columns: readonly Unchecked[]) => columns.map(({ column }) => String(column)).join(', ');

/** @returns the fields that can be read. */
function checkTable(table: Unchecked, path: string, problems: Problems): readonly Unchecked[] {
  const { name, key, fields } = table;
  const isName = typeof name === 'string' && isSnakeCase(name);
  problems.check(isName, `${path}.name`, name, 'use a plural in snake_case, such as bulk_deals');
  if (isName && VIEWS.includes(name)) {
    problems.error(
      `${path}.name is ${shown(name)}, which is a view of the schema market: give the table another name`,
    );
  }
  if (isName) {
    const remedy = `use at most ${LONGEST_TABLE} characters, because names of functions and indexes add to it`;
    problems.check(name.length <= LONGEST_TABLE, `${path}.name`, name, remedy);
  }
  problems.text(table, path, 'comment', 'say in a sentence what a row is');
  const remedy = 'list text(…), date(…), numeric(…) and the like';
  if (!problems.check(Array.isArray(fields) && fields.length > 0, `${path}.fields`, fields, remedy))
    return [];
  const known = (fields as readonly unknown[]).flatMap((field, at) => {
    if (!problems.check(isObject(field), `${path}.fields[${at}]`, field, remedy)) return [];
    checkField(field as Unchecked, `${path}.fields[${at}]`, problems);
    return [field as Unchecked];
  });
  const columns = known.map(({ column }) => column);
  for (const column of new Set(columns.filter((one, at) => columns.indexOf(one) !== at))) {
    problems.error(`${path}.fields declares the column ${shown(column)} twice: rename one of them`);
  }
  const keyRemedy = 'list the columns that tell two rows apart, exchange among them';
  const isKey = Array.isArray(key) && key.length > 0 && key.every(isText);
  if (!problems.check(isKey, `${path}.key`, key, keyRemedy)) return known;
  if (!(key as readonly string[]).includes('exchange')) {
    problems.error(`${path}.key has no exchange: add 'exchange' to it`);
  }
  for (const column of key as readonly string[]) checkKeyColumn(column, known, path, problems);
  return known;
}

function checkKeyColumn(
  column: string,
  fields: readonly Unchecked[],
  path: string,
  problems: Problems,
): void {
  const field = fields.find((one) => one.column === column);
  if (field === undefined) {
    problems.error(
      `${path}.key names ${shown(column)}, which no field has: add the field, or correct the name`,
    );
  } else if (field.from === 'answer' && field.required !== true && field.absent === undefined) {
    problems.error(
      `${path}.key names ${shown(column)}, which a record may lack: give its field { required: true }, or { absent: '' } or { absent: 0 }`,
    );
  }
}

function checkField(field: Unchecked, path: string, problems: Problems): void {
  const { from, column, kind, source, unit } = field;
  problems.oneOf(field, path, 'from', ['answer', 'request', 'derived']);
  problems.oneOf(field, path, 'kind', Object.keys(SQL_TYPES));
  problems.text(field, path, 'meaning', 'say in a sentence what the value means');
  if (from === 'answer')
    problems.check(isText(source), `${path}.source`, source, 'use the name of the source');
  else if (typeof from === 'string') {
    problems.check(typeof field.value === 'function', `${path}.value`, field.value, 'use a function');
  }
  if (!problems.check(isText(column), `${path}.column`, column, 'use a name in snake_case')) return;
  const name = String(column);
  const isName = /^[A-Za-z_]\w*$/.test(name) && name.length <= LONGEST_COLUMN;
  const longest = `use a name in snake_case of at most ${LONGEST_COLUMN} characters, which Postgres does not shorten`;
  if (!problems.check(isName, `${path}.column`, column, longest)) return;
  if (RESERVED.includes(name)) {
    problems.error(
      `${path}.column is ${shown(name)}, which every table has: use another name than ${either(RESERVED)}`,
    );
    return;
  }
  const isAudit = (SOURCE_AUDIT as readonly string[]).includes(name);
  const named = { name, isBoolean: kind === 'boolean', isMarket: true };
  const wrong = isAudit ? [] : nameProblems({ ...named, unit: isText(unit) ? unit : undefined });
  for (const problem of wrong) problems.warn(`${path}.column is ${shown(name)}: ${problem} (docs/tables.md)`);
}
