import { expect } from 'vitest';
import type { Behaviour, OpenPointName } from '../../src/sandbox/index.ts';
import { runJson } from '../support/cli.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
export const KEY = 'a key for tests';
export const DAY = '2025-09-12';

/** After the prices of that day are published. */
const clock = { now: () => Date.parse(`${DAY}T22:00:00+05:30`) };

export interface ProbeReport {
  readonly counted: number;
  readonly stopped: string | null;
  readonly openPoints: readonly {
    readonly name: OpenPointName;
    readonly state: 'settled' | 'contradicts' | 'undecided';
    readonly evidence: string;
    readonly setting: { readonly name: string; readonly value: string } | null;
  }[];
  readonly settings: readonly unknown[];
  readonly saved: { readonly folder: string; readonly responses: number } | null;
  readonly rights: readonly { readonly operation: string; readonly isServed: boolean }[];
  readonly formats: readonly { readonly compared: string; readonly differences: readonly string[] }[];
  readonly dates: { readonly isInclusive: boolean | null };
  readonly history: { readonly served: number; readonly refused: number | null } | null;
  readonly fields: readonly { readonly added: readonly string[]; readonly missing: readonly string[] }[];
  readonly calls: readonly { readonly problem: string | null }[];
}

/** Settings of a database and a source. */
export const settingsFor = (url: string, source: string) => ({
  DATABASE_URL: url,
  EOD_BASE_URL: source,
  EOD_ACCESS_KEY: KEY,
  EOD_CALLS_PER_HOUR: '100000',
});

/** A source with splits that behaves so. */
export const sourceWith = (behaviour: Partial<Behaviour> = {}) =>
  openSandbox({ accessKey: KEY, instrumentsPerExchange: 300, splits: true, clock, behaviour });

/** Runs the probe on a day of the past. */
export async function probe(url: string, source: string, ...flags: readonly string[]) {
  const args = ['probe', '--trial-day', DAY, ...flags];
  const result = await runJson<ProbeReport>(args, { cwd, env: settingsFor(url, source) });
  expect(result.stdout).not.toContain(KEY);
  return result;
}

export const statesOf = ({ openPoints }: ProbeReport) =>
  Object.fromEntries(openPoints.map(({ name, state }) => [name, state]));
