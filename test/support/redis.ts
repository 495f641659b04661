import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';

/**
 * Address of the run's Redis.
 *
 * @throws Error with the command that installs it where the machine has none.
 */
export function redisUrl(): string {
  const url = inject('redisUrl');
  if (url === '') {
    throw new Error('there is no redis-server on the PATH; install it by: node scripts/ensure-services.mjs');
  }
  return url;
}

/** A queue prefix (EOD_QUEUE_PREFIX) no other test uses, so that all can share one server. */
export function freePrefix(): string {
  return `t${randomBytes(8).toString('hex')}`;
}
