import { getTableColumns, getTableName, isTable } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { etlDescriptions } from '../../../src/state/schema/describe.ts';
import * as knowledge from '../../../src/state/schema/knowledge.ts';

test('the comment of a column of few values has each of them as it is stored', () => {
  const comments = new Map(etlDescriptions().map(({ name, columns }) => [name, columns]));
  const columns = Object.values(knowledge).flatMap((table) =>
    isTable(table)
      ? Object.values(getTableColumns(table)).flatMap(({ name, enumValues = [] }) =>
          enumValues.map((value: string) => ({ value, comment: comments.get(getTableName(table))?.[name] })),
        )
      : [],
  );
  expect(columns.map(({ value }) => value)).toEqual(expect.arrayContaining(['observed', 'quarters']));
  for (const { value, comment } of columns) expect(comment).toMatch(new RegExp(`\\b${value}\\b`));
});
