import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../../src/core/errors.ts';
import { query } from '../query.ts';

const LOOK_EVERY_MS = 50;

/** No window ended for so long: something hangs. */
const STUCK_AFTER_MS = 120_000;

/** Watches how far all runs of a database are, whatever happens to its server. */
export interface Progress {
  /** Waits until this share of the windows has ended. @returns false when all runs were over before. */
  reach(share: number): Promise<boolean>;
  /** Waits until every run is over. */
  end(): Promise<void>;
  /** What was done to the pipeline just now. */
  note(act: string): void;
  /** Longest time in which no window ended, and what was done last before its end. */
  longestPause(): Pause;
}

export interface Pause {
  readonly milliseconds: number;
  readonly after: string;
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
  let noted = 'the start';
  let longest: Pause = { milliseconds: 0, after: noted };

  async function until(enough: (look: Look) => boolean): Promise<Look> {
    let lastError = '';
    for (;;) {
      // A server that is unreachable is tried again.
      const [look] = await query<Look>(url, LOOK).catch((error) => {
        lastError = messageOf(error);
        return [];
      });
      if (look !== undefined) {
        if (look.ended !== ended) {
          const milliseconds = ended < 0 ? 0 : Date.now() - changedAt;
          if (milliseconds > longest.milliseconds) longest = { milliseconds, after: noted };
          changedAt = Date.now();
        }
        ended = look.ended;
        if (enough(look)) return look;
      }
      if (Date.now() - changedAt > STUCK_AFTER_MS) {
        throw new Error(
          `no window ended for ${STUCK_AFTER_MS / 1000} s: ${JSON.stringify(look)} ${lastError}`,
        );
      }
      await pause(LOOK_EVERY_MS);
    }
  }

  return {
    async reach(share) {
      const look = await until(({ ended, total, running }) => running === 0 || ended / total >= share);
      return look.running > 0;
    },
    async end() {
      await until(({ running }) => running === 0);
    },
    note(act) {
      noted = act;
    },
    longestPause: () => longest,
  };
}
