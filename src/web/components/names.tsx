import { Fragment } from 'preact';
import type { Day } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { sentenceCase } from '../../core/wording.ts';
import { GROUPS } from '../../declaration/operation.ts';
import { coveredSets, pairTitle, titled } from '../../operations/registry.ts';
import { coveragePath } from '../page.tsx';

/** A long name without spaces that may be wrapped between its words. */
export function Name({ children }: { readonly children: string }) {
  const words = children.split(/(?<=[a-z\d])(?=[A-Z])|(?<=_)/);
  return (
    <>
      {words.map((word, at) => (
        <Fragment key={at}>
          {at === 0 ? null : <wbr />}
          {word}
        </Fragment>
      ))}
    </>
  );
}

/** A data set by its title, what it is listed as, and the exchange. */
export function DataSet({ operation, exchange }: Pick<Pair, 'operation'> & Partial<Pair>) {
  const titles = titled(operation);
  return (
    <>
      {titles === null ? <Name>{operation}</Name> : `${titles.title}, `}
      <span class="of">
        {titles === null ? null : <Name>{titles.listedAs}</Name>} {exchange}
      </span>
    </>
  );
}

/** The same as a link to its calendar, or to one of its days. */
export function DataSetLink({ operation, exchange, day }: Pair & { readonly day?: Day | undefined }) {
  const dataSet = <DataSet operation={operation} exchange={exchange} />;
  // Lists have no coverage.
  if (!coveredSets.some(({ name }) => name === operation)) return dataSet;
  return <a href={coveragePath({ operation, exchange }, day)}>{dataSet}</a>;
}

/** `February` or `Feb`, of a day or month. */
export const monthName = (day: string, form: 'long' | 'short'): string =>
  new Intl.DateTimeFormat('en-US', { month: form, timeZone: 'UTC' }).format(Date.parse(day));

/** The heading of a group of data sets. */
export const groupTitle = ({ operation }: Pick<Pair, 'operation'>): string =>
  sentenceCase(titled(operation)?.group ?? 'others');

/** Data sets by group, title and exchange, as every page lists them. */
export const byTitle = <Item extends Pair>(items: readonly Item[]): Item[] => {
  const rank = ({ operation }: Pair) => {
    const { group } = titled(operation) ?? {};
    return group === undefined ? GROUPS.length : GROUPS.indexOf(group);
  };
  return items.toSorted((a, b) => rank(a) - rank(b) || (pairTitle(a) < pairTitle(b) ? -1 : 1));
};
