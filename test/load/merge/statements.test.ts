import { expect, test } from 'vitest';
import { foldSql } from '../../../src/load/fold/fold-sql.ts';
import { mergeSql } from '../../../src/load/merge/merge-sql.ts';
import seriesChanges from '../../../src/operations/GetSeriesChange.ts';
import { formatSql } from './format-sql.ts';

const [{ table }] = seriesChanges.shapes;

/** The statements of a table by name; `target` and `stage` are names of tables. */
const readStatements = (statements: object): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(statements).flatMap(([name, statement]: [string, string | { text: string } | null]) =>
      statement === null || name === 'target' || name === 'stage'
        ? []
        : [[name, formatSql(typeof statement === 'string' ? statement : statement.text)]],
    ),
  );

/** The lines of a statement that another one does not have. */
function listOwnLines(text: string, other: string): string {
  const others = new Set(other.split('\n').map((line) => line.trim()));
  return text
    .split('\n')
    .filter((line) => !others.has(line.trim()))
    .join('\n');
}

const inMarket = (text: string) =>
  text.replaceAll('pg_temp.fold_history_', 'market_history.').replaceAll('pg_temp.fold_', 'market.');

// After a change of the statements, `npx vitest run --project unit test/load/merge/statements.test.ts -u` writes the file.
test('the statements of a small table are those that were reviewed', async () => {
  const merge = readStatements(mergeSql(table));
  const fold = readStatements(foldSql(table));
  const lines = [
    '-- The statements of market.series_changes: src/load/merge/merge-sql.ts, src/load/fold/fold-sql.ts.',
  ];
  for (const [name, text] of merge) {
    if (name === 'mergeUnique') {
      lines.push('\n-- merge.mergeUnique is merge.merge but for these lines:');
      lines.push(listOwnLines(text, merge.get('merge') ?? ''));
    } else lines.push(`\n-- merge.${name}`, text);
  }
  for (const [name, text] of fold) {
    if (name === 'merge' || name === 'withdraw') {
      lines.push(`\n-- fold.${name} is merge.${name} in the temporary tables, but for these lines:`);
      lines.push(listOwnLines(inMarket(text), merge.get(name) ?? ''));
    } else lines.push(`\n-- fold.${name}`, text);
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('series-changes.sql');
});
