import type { ComponentChildren } from 'preact';
import { clockTime, momentText } from '../../core/wording.ts';

/** A time in a time zone: date and time to the minute, or with `form="clock"` the time of day and the zone. */
export function Moment({
  iso,
  zone,
  form = 'full',
}: {
  readonly iso: string | null;
  readonly zone: string;
  readonly form?: 'full' | 'clock';
}) {
  if (iso === null) return <span class="muted">–</span>;
  const text = form === 'clock' ? clockTime(iso, zone) : momentText(iso, zone).slice(0, 16);
  return (
    <time dateTime={iso} class="nowrap">
      {text}
    </time>
  );
}

/** Shown where there is nothing to list, with what to do next. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A command of the command line. */
export function Command({ children }: { readonly children: string }) {
  return <code class="command">{children}</code>;
}

/** A section with a heading, which is also its label. */
export function Section({
  id,
  title,
  note,
  children,
}: {
  readonly id: string;
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="card" aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{title}</h2>
        {note === undefined ? null : <p class="note">{note}</p>}
      </div>
      {children}
    </section>
  );
}

/** Links to the years of a page. */
export function Years({
  path,
  years,
  chosen,
}: {
  readonly path: string;
  readonly years: readonly number[];
  readonly chosen: number;
}) {
  return (
    <nav class="years" aria-label="Years">
      <ul>
        {years.map((year) => (
          <li key={year}>
            <a href={`${path}?year=${year}`} aria-current={year === chosen ? 'true' : undefined}>
              {year}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A list of names and values. */
export function Facts({
  facts,
}: {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[];
}) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
