import type { ComponentChildren, VNode } from 'preact';
import type { Day } from '../core/days.ts';
import type { Pair } from '../core/exchanges.ts';
import type { QueueContext } from '../jobs/context.ts';
import { COMMANDS } from './commands.ts';
import { Command } from './components/basics.tsx';

/** The parameters in the address of a page. */
export interface Requested {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** What a page shows. */
export interface Page {
  readonly title: string;
  readonly main: VNode;
  readonly status?: number;
  /** With JavaScript, the page is refreshed after this many seconds. */
  readonly refreshS?: number;
}

/** The page of a data set's calendar, or of one of its days. */
export function coveragePath({ operation, exchange }: Pair, day?: Day): string {
  const parts = [operation, exchange, ...(day === undefined ? [] : [day])];
  return `/coverage/${parts.map(encodeURIComponent).join('/')}`;
}

/** The heading of a page, with a line that says what it shows. */
export function Heading({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="heading">
      <h1>{title}</h1>
      {children === undefined ? null : <p class="lead">{children}</p>}
    </div>
  );
}

/** A page that would list rows, while there are none. */
export function pageWithoutRows(title: string, { config }: Pick<QueueContext, 'config'>): Page {
  return {
    title,
    main: (
      <Heading title={title}>
        Nothing is loaded yet:{' '}
        {config.EOD_ACCESS_KEY === undefined ? null : (
          <>
            <Command>{COMMANDS.backfillWeek}</Command> loads a week,{' '}
          </>
        )}
        <Command>{COMMANDS.import}</Command> loads files of the exchanges, and{' '}
        <Command>{COMMANDS.operations}</Command> describes the data sets.
      </Heading>
    ),
  };
}
