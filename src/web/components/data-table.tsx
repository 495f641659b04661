import type { ComponentChildren } from 'preact';
import type { Day } from '../../core/days.ts';
import { groupBy } from '../../core/iterables.ts';
import { count, rangeText, sentenceCase } from '../../core/wording.ts';

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers are aligned to the right. */
  readonly number?: boolean;
  /** Whether the column is wide enough for sentences. */
  readonly wide?: boolean;
}

/** Columns of numbers that are members of a row, under the names of these members. */
export const numberColumns = <Name extends string>(
  ...names: readonly Name[]
): Column<Readonly<Record<Name, number | null>>>[] =>
  names.map((name) => ({ head: sentenceCase(name), number: true, cell: (row) => row[name] }));

/** The days that a row is about. */
export const DAYS = {
  head: 'Days',
  cell: ({ from, to }: { readonly from: Day | null; readonly to: Day | null }) =>
    from === null || to === null ? null : <span class="nowrap">{rangeText({ from, to })}</span>,
};

/** The run that a row belongs to, as a link. */
export const RUN = {
  head: 'Run',
  cell: ({ runId }: { readonly runId: number | null }) =>
    runId === null ? null : <a href={`/runs/${runId}`}>{runId}</a>,
};

/**
 * A table that, where the page is narrow, scrolls sideways or stacks the cells of a row. The first column is the heading
 * of the row. Cells without a value, and zeros, are blank.
 *
 * @param caption what it lists, for screen readers.
 */
export function Table<Row>({
  caption,
  columns,
  rows,
  groupOf,
  empty,
  stacked = false,
}: {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** The heading under which a row is listed. */
  readonly groupOf?: (row: Row) => string;
  /** Shown instead of a table without rows. */
  readonly empty?: ComponentChildren;
  /** Whether a narrow page shows a row as lines. If not, its first column stays visible while the others scroll. */
  readonly stacked?: boolean;
}) {
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard.
    <section class="scroll" aria-label={`Table: ${caption}`} tabIndex={0}>
      <table class={stacked ? 'stacked' : 'sticky'}>
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
        {[...groupBy(rows, groupOf ?? (() => ''))].map(([group, ofGroup]) => (
          <tbody key={group}>
            {group === '' ? null : (
              <tr>
                <th scope="rowgroup" class="group" colSpan={columns.length}>
                  {group}
                </th>
              </tr>
            )}
            {ofGroup.map((row, at) => (
              <tr key={at}>
                {columns.map(({ head, cell, number, wide }, position) =>
                  position === 0 ? (
                    <th key={head} scope="row">
                      {cell(row)}
                    </th>
                  ) : (
                    <td
                      key={head}
                      data-head={stacked ? head : undefined}
                      class={number === true ? 'number' : wide === true ? 'wide' : ''}
                    >
                      {shown(cell(row))}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </section>
  );
}

const shown = (value: ComponentChildren): ComponentChildren =>
  typeof value === 'number' ? (value === 0 ? null : count(value)) : value;
