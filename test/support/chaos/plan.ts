import { randomFrom, shuffled } from './random.ts';

export type Backend = 'redis' | 'postgres';

export type ActKind =
  | 'kill -9 a worker'
  | 'restart Postgres, fast'
  | 'restart Postgres, immediate'
  | 'restart Redis, empty'
  | 'cut connections to Postgres'
  | 'cut connections to Redis'
  | 'replay in place'
  | 'kill -9 a replay and resume it'
  | 'import files'
  | 'start a second backfill and a night at once';

export interface Act {
  readonly kind: ActKind;
  /** Share of the windows that have ended by then. */
  readonly at: number;
}

/** The first and the last mark: before it nothing is at work, after it too little is left. */
const FIRST = 0.03;
const LAST = 0.93;

/** The sequence of acts of a suite: it follows from the seed alone (pure). */
export function planActs(seed: number, kills: number, backend: Backend): Act[] {
  const random = randomFrom(seed);
  const restarts = Math.max(1, Math.round(kills / 25));
  const cuts = Math.max(1, Math.round(kills / 16));
  const replays = Math.max(1, Math.round(kills / 30));
  const acts: ActKind[] = [
    ...times(kills, 'kill -9 a worker'),
    ...times(restarts, 'restart Postgres, fast'),
    ...times(restarts, 'restart Postgres, immediate'),
    ...times(cuts, 'cut connections to Postgres'),
    ...times(replays, 'replay in place'),
    ...times(replays, 'kill -9 a replay and resume it'),
    'import files',
    ...times(backend === 'redis' ? restarts : 0, 'restart Redis, empty'),
    ...times(backend === 'redis' ? cuts : 0, 'cut connections to Redis'),
  ];
  const step = (LAST - FIRST) / acts.length;
  return [
    { kind: 'start a second backfill and a night at once', at: FIRST * random() },
    ...shuffled(random, acts).map((kind, index) => ({ kind, at: FIRST + (index + random()) * step })),
  ];
}

function times(count: number, kind: ActKind): ActKind[] {
  return Array.from({ length: count }, () => kind);
}
