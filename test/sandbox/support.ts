import { beforeAll } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { type Day, dayEnd, dayStart } from '../../src/core/days.ts';
import type { Operation } from '../../src/declaration/operation.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';
import { closeAfterFile, closeAfterTest } from '../support/closing.ts';

const ZONE = 'Asia/Kolkata';

/** Friday evening, an hour after the data is out. */
export const NOW = Date.parse('2025-09-12T22:02:00+05:30');
/** The week before NOW: five trading days. */
export const WEEK: readonly Day[] = ['2025-09-08', '2025-09-09', '2025-09-10', '2025-09-11', '2025-09-12'];

/** A clock that shows the same time until it is moved. */
export function manualClock(at = NOW): Clock & { moveTo(ms: number): void } {
  let now = at;
  return {
    now: () => now,
    moveTo(ms) {
      now = ms;
    },
  };
}

/** A sandbox at NOW, of few instruments to start quickly, that is closed after the test. */
export async function sandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const started = await startSandbox({ clock: manualClock(), instrumentsPerExchange: 90, ...options });
  closeAfterTest(() => started.close());
  return started;
}

/** One sandbox at NOW for all tests of a file that only read. */
export function sharedSandbox(options: SandboxOptions = {}): () => Sandbox {
  let shared: Sandbox | undefined;
  beforeAll(async () => {
    const started = await startSandbox({ clock: manualClock(), ...options });
    closeAfterFile(() => started.close());
    shared = started;
  });
  return () => {
    if (shared === undefined) throw new Error('the shared sandbox is not running yet');
    return shared;
  };
}

export const range = (from: Day, to: Day = from) => ({
  from: String(dayStart(from, ZONE)),
  to: String(dayEnd(to, ZONE)),
});

export const midnight = (day: Day) => String(dayStart(day, ZONE));

export function ask(
  { url }: Sandbox,
  operation: string,
  params: Readonly<Record<string, string>>,
  init?: RequestInit,
): Promise<Response> {
  const query = new URLSearchParams({ accessKey: 'any-key', exchange: 'BSE', ...params });
  return fetch(`${url}/${operation}?${query}`, init);
}

export async function textOf(
  from: Sandbox,
  operation: string,
  params: Readonly<Record<string, string>> = {},
): Promise<string> {
  return (await ask(from, operation, params)).text();
}

export type SentRecord = Record<string, string | number | boolean | null>;

/** Records of a response in the default envelope, or the bare object in a list. */
export async function records(
  from: Sandbox,
  operation: string,
  params: Readonly<Record<string, string>>,
): Promise<SentRecord[]> {
  const body = JSON.parse(await textOf(from, operation, params)) as { Value?: SentRecord[] } & SentRecord;
  return body.Value ?? [body];
}

/** Parameters with which an operation has something to say about one trading day. */
export function plainRequest(operation: Operation, exchange: string, day: Day): Record<string, string> {
  const params: Record<string, string> = { exchange };
  if (operation.request.dates === 'range') Object.assign(params, range(day));
  if (operation.request.dates === 'day') params.date = midnight(day);
  if (operation.windows.per === 'instrument') params.instrumentIdentifier = 'TCS';
  return params;
}
