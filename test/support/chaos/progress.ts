import { waitFor } from '../wait-for.ts';
import { rowsOf } from './postgres.ts';

/** No window ended for so long: something hangs. */
const PATIENCE_MS = 120_000;

/** Watches how far all runs of a database are, whatever happens to its server. */
export interface Progress {
  /** Waits until this share of the windows has ended. @returns false when all runs were over before. */
  reach(share: number): Promise<boolean>;
  /** Waits until every run is over. */
  end(): Promise<void>;
  /** Longest time in which no window ended. Unit: milliseconds. */
  longestPause(): number;
}

interface Look {
  readonly ended: number;
  readonly total: number;
  readonly running: number;
}

const LOOK = `
  select count(*) filter (where state not in ('pending', 'running'))::int as ended, count(*)::int as total,
    (select count(*)::int from etl.runs where state = 'running') as running
    from etl.windows where state <> 'skipped'`;

export function watchProgress(url: string): Progress {
  let ended = -1;
  let changedAt = Date.now();
  let longest = 0;

  async function look(): Promise<Look> {
    const [row] = await rowsOf<{ ended: number; total: number; running: number }>(url, LOOK);
    if (row === undefined) throw new Error('no answer');
    const pause = Date.now() - changedAt;
    longest = Math.max(longest, pause);
    if (row.ended !== ended || row.running === 0) changedAt = Date.now();
    ended = row.ended;
    if (pause > PATIENCE_MS) throw new Error(`no window ended for ${Math.round(pause / 1000)} s`);
    return row;
  }

  /** The first look that will do; a server that is away is asked again. */
  async function until<T>(answer: (seen: Look) => T | null, what: string): Promise<T> {
    const found = await waitFor(
      async () => {
        const seen = answer(await look());
        return seen === null ? null : { seen };
      },
      { timeoutMs: PATIENCE_MS * 60, everyMs: 50, what },
    );
    return found.seen;
  }

  return {
    reach(share) {
      return until(({ ended, total, running }) => {
        if (total > 0 && ended / total >= share) return true;
        return running === 0 && total > 0 ? false : null;
      }, `${Math.round(share * 100)} % of the windows`);
    },
    async end() {
      await until(({ running }) => (running === 0 ? true : null), 'the end of all runs');
    },
    longestPause: () => longest,
  };
}
