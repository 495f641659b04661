import { and, asc, inArray, type SQL } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { Transitions, WindowState } from '../request.ts';
import { windows } from '../schema/work.ts';

/** The transitions of a window. No statement sets a state that its transition does not list. */
export const WINDOW_TRANSITIONS = {
  plan: {
    from: [],
    to: ['pending', 'skipped'],
    when: 'It is inserted, with its run or as a piece of a window that is split. `skipped`: there is nothing to request.',
  },
  import: { from: [], to: ['running'], when: 'It is inserted when the import of its file begins.' },
  claim: {
    from: ['pending', 'running'],
    to: ['running'],
    when: 'A worker takes it; from `running` if the worker that had it is gone.',
  },
  release: { from: ['running'], to: ['pending'], when: 'Its worker puts it back for a later try.' },
  store: {
    from: ['pending', 'running'],
    to: ['loaded', 'empty', 'failed'],
    when: 'Its response is stored; from `pending` if it was put back while its response was being fetched.',
  },
  end: {
    from: ['pending', 'running'],
    to: ['failed', 'blocked', 'skipped'],
    when: 'It is given up, alone or with others of its run, operation or exchange. `skipped`: the key may not use what it requests.',
  },
  skip: { from: ['pending', 'running'], to: ['skipped'], when: 'Nothing is to be loaded for it after all.' },
  split: { from: ['pending', 'running'], to: ['split'], when: 'Windows of shorter ranges replace it.' },
  cancel: {
    from: ['pending', 'running'],
    to: ['cancelled'],
    when: 'Its run is cancelled.',
  },
  reopen: { from: ['failed', 'blocked'], to: ['pending'], when: 'Its run is resumed.' },
} as const satisfies Transitions<WindowState>;

type Transition = keyof typeof WINDOW_TRANSITIONS;

/** A state that this transition ends in. */
export type WindowAfter<Name extends Transition> = (typeof WINDOW_TRANSITIONS)[Name]['to'][number];

/** States of a window that has not ended. */
export const OPEN_STATES = ['pending', 'running'] as const satisfies readonly WindowState[];

/** The condition that the window is in a state that this transition starts from. */
export const canBegin = (transition: Transition): SQL =>
  inArray(windows.state, [...WINDOW_TRANSITIONS[transition].from]);

/** The condition that the window has not ended. */
export const isOpen = (): SQL => inArray(windows.state, [...OPEN_STATES]);

/** An update that makes this transition; windows in a state that it does not start from stay as they are. */
export function moveWindows<Name extends Transition>(
  db: NodePgDatabase,
  transition: Name,
  values: PgUpdateSetSource<typeof windows> & { readonly state: WindowAfter<Name> },
  chosen: SQL | undefined,
) {
  return db
    .update(windows)
    .set(values)
    .where(and(chosen, canBegin(transition)));
}

/**
 * The same for any number of windows. They are locked in the order of their ids, as everywhere, so that two writers cannot
 * deadlock.
 */
export function moveWindowsInOrder<Name extends Transition>(
  db: NodePgDatabase,
  transition: Name,
  values: PgUpdateSetSource<typeof windows> & { readonly state: WindowAfter<Name> },
  chosen: SQL | undefined,
) {
  const locked = db
    .select({ id: windows.id })
    .from(windows)
    .where(and(chosen, canBegin(transition)))
    .orderBy(asc(windows.id))
    .for('update');
  return moveWindows(db, transition, values, inArray(windows.id, locked));
}
