import type { LearningCalendar } from '../calendar/calendar.ts';
import type { Clock } from '../core/clock.ts';
import type { Config } from '../core/config.ts';
import type { Logger } from '../core/log.ts';
import type { Source } from '../extract/types.ts';
import type { Database } from '../postgres/database.ts';
import type { Queues } from './queue/queue.ts';

/** What functions of this folder need; passed to them as a plain argument. */
export interface Context {
  readonly config: Config;
  readonly log: Logger;
  readonly db: Database;
  readonly clock: Clock;
  readonly calendar: LearningCalendar;
}

/** For what plans, enqueues and follows runs. */
export interface QueueContext extends Context {
  readonly queues: Queues;
}

/** For what works on windows. */
export interface WorkContext extends QueueContext {
  readonly source: Source;
}
