import type { DayKind } from '../../jobs/runs/read-coverage.ts';

/**
 * What is shown about a day, a trading day, a run or a check. Each has its own shape, so that nothing depends on
 * colour.
 */
export type Mark = Exclude<DayKind, 'nothing'> | 'running' | 'paused' | 'none';

/** Shapes in a square of 16 by 16, filled or drawn as a line. */
const SHAPES: Readonly<Record<Mark, { readonly fill?: string; readonly line?: string }>> = {
  complete: {
    fill: 'M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13zm-1.2 9.3 4.6-5-1.2-1.1-3.5 3.8-1.6-1.6-1.1 1.1z',
  },
  empty: { line: 'M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11' },
  holiday: { fill: 'M8 6a2 2 0 1 1 0 4a2 2 0 1 1 0-4z' },
  missing: { line: 'M3.5 3.5l9 9m0-9l-9 9' },
  suspicious: { fill: 'M8 1.5 15 14.5H1zM7.2 6v4h1.6V6zm0 5.2v1.6h1.6v-1.6z' },
  pending: { line: 'M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11M8 5v3l2.2 1.6' },
  running: { fill: 'M4 2.5v11l9-5.5z' },
  paused: { fill: 'M4 2.5h3v11H4zm5 0h3v11H9z' },
  none: { line: 'M4 8h8' },
};

/** Only the shape, hidden from screen readers: the text beside it says the same. */
export function MarkIcon({ mark }: { readonly mark: Mark }) {
  const { fill, line } = SHAPES[mark];
  return (
    <svg class={`mark mark-${mark}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {fill === undefined ? null : <path d={fill} fill-rule="evenodd" class="mark-fill" />}
      {line === undefined ? null : <path d={line} class="mark-line" />}
    </svg>
  );
}

/** A pill with a shape and a text. */
export function Badge({ mark, children }: { readonly mark: Mark; readonly children: string }) {
  return (
    <span class={`badge badge-${mark}`}>
      <MarkIcon mark={mark} />
      {children}
    </span>
  );
}

/** The mark of a state of a run or a window. */
export function markOfState(state: string): Mark {
  if (state === 'completed' || state === 'loaded') return 'complete';
  if (state === 'failed' || state === 'blocked') return 'missing';
  if (state === 'paused') return 'paused';
  if (state === 'running') return 'running';
  if (state === 'pending') return 'pending';
  return state === 'empty' || state === 'no records' ? 'empty' : 'none';
}
