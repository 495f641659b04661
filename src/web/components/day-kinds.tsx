import { count, plural } from '../../core/wording.ts';
import type { CoverageDay, DayKind } from '../../jobs/runs/read-coverage.ts';
import { gapText } from '../../state/coverage/gap-reasons.ts';
import { MarkIcon } from './marks.tsx';

/** The kinds of days that are drawn, in the order of the legend. */
const SHOWN_KINDS = ['complete', 'empty', 'holiday', 'missing', 'suspicious', 'pending'] as const;

/** What each kind of a day means. */
const KIND_TEXTS: Readonly<Record<DayKind, string>> = {
  complete: 'complete',
  empty: 'no data (expected)',
  holiday: 'holiday',
  missing: 'missing',
  suspicious: 'suspicious, rows may be missing',
  pending: 'not due yet',
  nothing: 'nothing expected',
};

/** Small shapes in a square of 10 by 10, as paths: one path draws all days of a kind. */
export const SMALL_SHAPES: Readonly<Record<(typeof SHOWN_KINDS)[number], string>> = {
  complete: 'h10v10h-10z',
  empty: 'm1 1h8v8h-8z',
  holiday: 'm4 4h2v2h-2z',
  missing: 'm1 1l8 8m0-8l-8 8',
  suspicious: 'm5 0l5 10h-10z',
  pending: 'm2 5h6',
};

/** A day in words. */
export function dayText({ day, kind, reason, detail, records }: CoverageDay): string {
  const text = `${day}: ${KIND_TEXTS[kind]}`;
  if (kind === 'complete' && records > 0) return `${text}, ${plural(records, 'record')}`;
  if (kind !== 'missing') return text;
  return `${text}, ${reason === null ? 'for no known reason' : gapText({ reason, detail })}`;
}

/** How many days of each kind there are, in words. */
export function totalsText(days: readonly CoverageDay[]): string {
  const number = (kind: DayKind) => days.filter((day) => day.kind === kind).length;
  const parts: string[] = [`${count(number('complete'))} complete`];
  for (const kind of ['empty', 'missing', 'suspicious', 'pending'] as const) {
    const total = number(kind);
    if (total > 0) parts.push(`${count(total)} ${kind === 'pending' ? 'not due yet' : kind}`);
  }
  return parts.join(', ');
}

/** Explains the shapes; with `strip`, the small ones of a year. */
export function Legend({ strip = false }: { readonly strip?: boolean }) {
  return (
    <ul class="legend">
      {SHOWN_KINDS.map((kind) => (
        <li key={kind}>
          {strip ? (
            <svg class="swatch-small" viewBox="0 0 10 10" aria-hidden="true">
              <path class={`cell-${kind}`} d={`M0 0${SMALL_SHAPES[kind]}`} />
            </svg>
          ) : (
            <span class={`swatch day-${kind}`}>{kind === 'complete' ? null : <MarkIcon mark={kind} />}</span>
          )}
          {KIND_TEXTS[kind]}
        </li>
      ))}
    </ul>
  );
}
