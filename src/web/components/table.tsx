import type { ComponentChildren } from 'preact';
import { count } from '../../core/wording.ts';

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand at the right, below one another. */
  readonly number?: boolean;
  /** Sentences have room. */
  readonly wide?: boolean;
}

/**
 * A table in a container of its own, which scrolls where the page is narrow. The first column names the row.
 *
 * @param caption what it lists, for those who do not see the heading above it.
 */
export function Table<Row>({
  caption,
  columns,
  rows,
  sticky = true,
}: {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Does the first column stay in sight while the others scroll? */
  readonly sticky?: boolean;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
    <section class="scroll" aria-label={`Table: ${caption}`} tabIndex={0}>
      <table class={sticky ? 'sticky' : ''}>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ head, number }) => (
              <th key={head} scope="col" class={number === true ? 'number' : ''}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {columns.map(({ head, cell, number, wide }, place) =>
                place === 0 ? (
                  <th key={head} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={head} class={number === true ? 'number' : wide === true ? 'wide' : ''}>
                    {show(cell(row))}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Numbers with separators; a dash where there is nothing. */
function show(value: ComponentChildren): ComponentChildren {
  if (typeof value === 'number') return count(value);
  return value === null || value === undefined || value === '' ? <span class="muted">–</span> : value;
}
