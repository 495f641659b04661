import { request } from 'undici';

/** Longer than this nobody waits for a webhook. */
const TIMEOUT_MS = 5_000;

/**
 * Posts a document as JSON.
 *
 * @throws Error when there is no answer in time, or one that is not 2xx.
 */
export async function postJson(address: string, document: unknown, signal?: AbortSignal): Promise<void> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const answer = await request(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(document),
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  });
  // What it says does not matter, but an unread answer keeps its connection.
  await answer.body.dump();
  if (answer.statusCode < 200 || answer.statusCode > 299) {
    throw new Error(`the webhook answered ${answer.statusCode}`);
  }
}
