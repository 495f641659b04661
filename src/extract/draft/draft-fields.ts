import { plainName } from '../../operations/fields.ts';
import { type DataSet, type Operation, tablesOfAnswers } from '../../operations/operation.ts';
import { openAnswer } from '../envelope.ts';
import { leftOutText, lineOfField } from './draft.ts';
import { guessColumns } from './guess-columns.ts';
import { isRecord, type SavedRecord, withDigits } from './saved-answer.ts';

interface FieldsInput {
  readonly operation: Operation;
  /** The bodies of kept answers of the operation. */
  readonly bodies: readonly Buffer[];
  /** Fields to declare, as names are compared. */
  readonly fields: readonly string[];
  /** Declared elsewhere: what names of the source are called here. */
  readonly known: readonly DataSet[];
  readonly timeZone: string;
}

/** Writes the lines of a declaration for fields that it does not read, from answers that have them (pure). */
export function draftFields({ operation, bodies, fields, ...context }: FieldsInput): string[] {
  const records = bodies.flatMap((body) => {
    const opened = openAnswer(body, { operation, count: 'ignore', redact: (text) => text });
    return opened.records.filter(isRecord).map((record) => onlyOf(withDigits(record), fields));
  });
  const taken = tablesOfAnswers(operation).flatMap((table) => table.fields.map(({ column }) => column));
  const { columns, leftOut } = guessColumns(records, { ...context, taken });
  return [...columns.map(lineOfField), ...leftOut.map(leftOutText)];
}

const onlyOf = (record: SavedRecord, fields: readonly string[]): SavedRecord =>
  Object.fromEntries(Object.entries(record).filter(([name]) => fields.includes(plainName(name))));
