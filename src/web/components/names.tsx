import { Fragment } from 'preact';
import type { Day } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
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

/** An operation with its exchange. */
export function DataSet({ operation, exchange }: Pair) {
  return (
    <>
      <Name>{operation}</Name> <span class="exchange">{exchange}</span>
    </>
  );
}

/** The same as a link to its calendar, or to one of its days. */
export function DataSetLink({ operation, exchange, day }: Pair & { readonly day?: Day | undefined }) {
  return (
    <a href={coveragePath({ operation, exchange }, day)}>
      <DataSet operation={operation} exchange={exchange} />
    </a>
  );
}
