import { type Clock, systemClock } from '../core/clock.ts';
import { PipelineError } from '../core/errors.ts';
import type { Logger } from '../core/log.ts';
import type { Operation } from '../operations/operation.ts';
import { decodeText } from './body.ts';
import { buildLimitationUrl, buildUrl, keyRedactor } from './build-request.ts';
import { createClient } from './client.ts';
import { diagnose } from './diagnostics.ts';
import { checkAnswer } from './envelope.ts';
import { parseLimitation } from './limitation.ts';
import { readAnswer } from './read.ts';
import type { Source, SourceSettings } from './types.ts';

export { buildUrl } from './build-request.ts';
export type { Allowance, Limitation } from './limitation.ts';
export { readAnswer } from './read.ts';
export type * from './types.ts';

/** The source service behind `settings.baseUrl`. Close it to release its connections. */
export function createSource(settings: SourceSettings, log?: Logger, clock: Clock = systemClock): Source {
  const client = createClient(settings, clock);
  const redact = keyRedactor(settings.accessKey);
  function check(body: Buffer, operation: Operation): void {
    try {
      checkAnswer(body, { operation, redact });
    } catch (error) {
      if (!(error instanceof PipelineError) || error.kind !== 'unreadable') throw error;
      throw new PipelineError(error.message, { ...error, answer: body });
    }
  }
  return {
    async fetch(operation, asked, signal) {
      const url = buildUrl(settings, operation, asked);
      const about = { operation: operation.name, exchange: asked.exchange, from: asked.from, to: asked.to };
      const start = performance.now();
      const ms = () => Math.round(performance.now() - start);
      try {
        const { status, ...answer } = await client.get(url, signal);
        log?.debug({ ...about, status, bytes: answer.bytes, ms: ms() }, 'answer');
        check(answer.body, operation);
        return answer;
      } catch (error) {
        log?.debug(
          { ...about, ms: ms(), error: error instanceof Error ? error.message : 'unknown' },
          'call failed',
        );
        throw error;
      }
    },
    async limitation(signal) {
      const { body } = await client.get(buildLimitationUrl(settings), signal);
      const text = decodeText(body);
      const refused = diagnose(text, redact);
      if (refused !== null) throw refused;
      return parseLimitation(text, settings.timeZone);
    },
    clockOffsetMs: () => client.clockOffsetMs(),
    lastDate: () => client.lastDate(),
    read: (operation, asked, answer, count = 'check') =>
      readAnswer(operation, asked, answer, { ...settings, count }),
    close: () => client.close(),
  };
}
