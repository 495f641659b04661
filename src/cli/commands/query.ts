import { Readable } from 'node:stream';
import { text as readText } from 'node:stream/consumers';
import { usageError } from '../../core/errors.ts';
import { escapeControls } from '../../core/wording.ts';
import { SHORT_EXAMPLES } from '../../load/examples.ts';
import type { ResultColumn, ResultRow, RowSink } from '../../postgres/read-query.ts';
import { type Cli, logNote, logStderr, print, writeOut } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { flag, integer, LIMIT, required } from '../options.ts';
import { plural, table } from '../output.ts';

/** How many rows a table shows if `--limit` says nothing: it is held in memory, and read by a person. */
const LISTED_AS_TABLE = 1_000;

export default defineCommand({
  path: 'query',
  group: 'Look',
  summary: 'Run one read-only SQL statement, and print its rows as a table, CSV or JSON.',
  args: { sql: required('one SELECT or other reading statement; - reads it from stdin') },
  options: {
    csv: flag('print CSV with a header line'),
    limit: integer('<n>', `rows to print at most (default: all; ${LISTED_AS_TABLE} in a table)`, LIMIT),
    timeout: {
      ...integer('<seconds>', 'how long the statement may run', { least: 1, most: 86_400 }),
      default: 300,
    },
  },
  json: 'a list of objects; numbers keep all their digits',
  examples: [
    `eod query "${SHORT_EXAMPLES.few}"`,
    `eod query --csv "${SHORT_EXAMPLES.many}" > prices.csv`,
    'eod query --json - < report.sql | jq .',
  ],
  async run(cli, { sql, csv, limit, timeout, json }) {
    const { readQuery } = await import('../../postgres/read-query.ts');
    const { openForUser } = await import('../open-readable.ts');
    if (csv && json) throw usageError('give one of --csv and --json');
    const text = sql === '-' ? await readText(cli.stdin?.() ?? Readable.from([])) : sql;
    if (text.trim() === '') throw usageError('there is no SQL: give a statement, or - to read it from stdin');
    const { db } = await openForUser(cli, 'anything');
    const asTable = !csv && !json;
    const most = limit ?? (asTable ? LISTED_AS_TABLE : Number.POSITIVE_INFINITY);
    const printer = asTable ? tablePrinter(cli) : csv ? csvPrinter(cli) : jsonPrinter(cli);
    const notices = new Set<string>();
    let count = 0;
    let cut = false;
    let written = 0;
    const whole = await readQuery(
      db,
      text,
      { timeoutMs: timeout * 1_000, timeoutName: '--timeout', signal: cli.life.signal },
      {
        begin: printer.begin,
        async rows(rows) {
          const wanted = rows.slice(0, most - count);
          cut = wanted.length < rows.length;
          count += wanted.length;
          const began = performance.now();
          const more = await printer.rows(wanted);
          written += performance.now() - began;
          return more && !cut;
        },
        notice: (text) => void notices.add(text),
      },
    );
    await printer.end();
    for (const notice of notices) logNote(cli, `eod: ${escapeControls(notice)}`);
    if (cut) {
      const how = limit === undefined ? '; --limit shows more, --csv and --json show all' : '';
      logStderr(cli, `eod: only the first ${count} rows are shown${how}`);
    }
    // On a terminal only, as stderr in a file or a pipe shows what went wrong. The time of printing is not counted.
    if (cli.stderr.isTTY === true || cli.verbosity === 'everything') {
      logNote(cli, `Time: ${(whole - written).toFixed(3)} ms`);
    }
  },
});

interface Printer extends RowSink {
  end(): Promise<void>;
}

/** Oids of the number types: int8, int2, int4, oid, float4, float8, numeric. */
const NUMBERS = [20, 21, 23, 26, 700, 701, 1700];

/** Prints a table, with values as Postgres writes them. */
function tablePrinter(cli: Cli): Printer {
  let columns: readonly ResultColumn[] = [];
  const all: ResultRow[] = [];
  return {
    begin(resultColumns) {
      columns = resultColumns;
    },
    async rows(rows) {
      for (const row of rows) all.push(row);
      return true;
    },
    async end() {
      if (columns[0]?.name === 'QUERY PLAN') {
        // Not wrapped: the indentation of a plan shows which node belongs to which.
        await writeOut(cli, escapeControls(all.map(([line]) => `${line}\n`).join('')));
        return;
      }
      const drawn = columns.map(({ name, type }, at) => ({
        head: name,
        cell: (row: ResultRow) => row[at] ?? null,
        right: NUMBERS.includes(type),
      }));
      print(cli, `${table(drawn, all)}\n\n${plural(all.length, 'row')}`);
    },
  };
}

/**
 * Prints CSV as Postgres' COPY writes it: null is nothing, an empty text is `""`. In a file or a pipe it is data, with
 * every character as it is stored; on a terminal `writeOut` escapes control characters.
 */
function csvPrinter(cli: Cli): Printer {
  const line = (values: ResultRow) => {
    const text = values.map(csvCell).join(',');
    // COPY takes a line with only this for the end of the data.
    return text === '\\.' ? '"\\."\n' : `${text}\n`;
  };
  return {
    async begin(columns) {
      await writeOut(cli, line(columns.map(({ name }) => name)));
    },
    rows: (rows) => writeOut(cli, rows.map(line).join('')),
    end: async () => undefined,
  };
}

function csvCell(value: string | null): string {
  if (value === null) return '';
  return value === '' || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

/** Prints a JSON list of objects, one a line. */
function jsonPrinter(cli: Cli): Printer {
  let keys: string[] = [];
  let values: ((text: string) => string)[] = [];
  let separator = '[\n';
  return {
    begin(columns) {
      keys = distinctNames(columns.map(({ name }) => name)).map((name) =>
        escapeControls(JSON.stringify(name)),
      );
      values = columns.map(({ type }) => jsonValue(type));
    },
    rows(rows) {
      cli.printedJson = true;
      const text = rows.map((row) => {
        const members = row.map((value, at) => `${keys[at]}:${value === null ? null : values[at]?.(value)}`);
        const start = separator;
        separator = ',\n';
        return `${start}{${members.join(',')}}`;
      });
      return writeOut(cli, text.join(''));
    },
    async end() {
      cli.printedJson = true;
      await writeOut(cli, separator === '[\n' ? '[]\n' : '\n]\n');
    },
  };
}

/** Names with a number where one is there already: a second member of the same name would hide the first. */
function distinctNames(names: readonly string[]): string[] {
  // The first column of a name keeps it.
  const taken = new Set(names);
  return names.map((name, at) => {
    if (names.indexOf(name) === at) return name;
    let next = 2;
    while (taken.has(`${name}_${next}`)) next += 1;
    taken.add(`${name}_${next}`);
    return `${name}_${next}`;
  });
}

/** How values of a type are written: numbers digit by digit, JSON as it is, anything else as text. */
function jsonValue(type: number): (text: string) => string {
  const asText = (text: string) => escapeControls(JSON.stringify(text));
  if (NUMBERS.includes(type)) return (text) => (/^-?\d/.test(text) ? text : asText(text));
  if (type === 16) return (text) => (text === 't' ? 'true' : 'false');
  // Postgres keeps the line ends between the values of JSON, where they mean nothing. Within texts there are none.
  if (type === 114 || type === 3802) return (text) => escapeControls(text.replace(/[\t\r\n]+/g, ' '));
  return asText;
}
