import type { Command } from 'commander';
import { allowedText } from '../operations/operation.ts';
import { operationNamed, operations } from '../operations/registry.ts';
import { type Cli, examples } from './command.ts';
import { type Description, describe, type FieldDescription, type TableDescription } from './dictionary.ts';
import { bold, type Column, print, printJson, table } from './output.ts';

const COLUMNS: readonly Column<Description>[] = [
  { head: 'operation', cell: (one) => one.name },
  { head: 'exchanges', cell: (one) => one.exchanges.join(',') },
  { head: 'table', cell: (one) => one.tables.map(({ name }) => name.replace(/^market\./, '')).join(', ') },
  { head: 'scheduled', cell: (one) => `${one.schedule.on} ${one.schedule.at}` },
  { head: 'summary', cell: (one) => one.summary },
];

const FIELD_COLUMNS: readonly Column<FieldDescription>[] = [
  { head: 'column', cell: (field) => field.column },
  { head: 'type', cell: (field) => field.type },
  { head: 'unit', cell: (field) => field.unit },
  { head: 'source field', cell: (field) => field.source },
  { head: 'meaning', cell: (field) => field.meaning },
];

export function operationsCommand(program: Command, _cli: Cli): Command {
  return program
    .command('operations')
    .description(
      'The operations; with a name its parameters, tables, fields and units (the data dictionary).',
    )
    .argument('[name]', 'one operation, in any case')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples('eod operations', 'eod operations GetBhavCopyCM'))
    .action((name: string | undefined, flags: { readonly json?: boolean }) => {
      if (name === undefined) {
        const all = operations.map(describe);
        return flags.json === true ? printJson(all) : print(table(COLUMNS, all));
      }
      const one = describe(operationNamed(name));
      if (flags.json === true) printJson(one);
      else print(text(one));
    });
}

function text(one: Description): string {
  const options = one.options.map((option) => {
    const { param, meaning, fallback } = option;
    const allowed = allowedText(option);
    return `  ${param}: ${meaning}${allowed === null ? '' : ` (${allowed})`}${fallback === undefined ? '' : `; ${fallback} when not given`}`;
  });
  return [
    `${bold(one.name)}: ${one.summary}`,
    '',
    `exchanges    ${one.exchanges.join(', ')} when none are named`,
    `asked by     ${one.windows}`,
    `instruments  ${one.instruments}`,
    `scheduled    ${one.schedule.on} at ${one.schedule.at}`,
    ...(options.length === 0 ? [] : ['options', ...options]),
    ...one.tables.flatMap(tableText),
    '',
    bold('sample answer'),
    JSON.stringify(one.sample.answer, null, 2),
  ].join('\n');
}

function tableText({ name, comment, key, fields }: TableDescription): string[] {
  return ['', bold(name), comment, `key: ${key.join(', ')}`, '', table(FIELD_COLUMNS, fields)];
}
