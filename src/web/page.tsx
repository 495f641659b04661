import type { ComponentChildren, VNode } from 'preact';
import type { Day } from '../core/days.ts';
import type { Pair } from '../core/exchanges.ts';
import { FIRST_STEPS } from './commands.ts';
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

/** What a new user can do. */
export function FirstSteps() {
  return (
    <ol class="steps">
      {FIRST_STEPS.map(({ command, does }) => (
        <li key={command}>
          <Command>{command}</Command> {does}
        </li>
      ))}
    </ol>
  );
}
