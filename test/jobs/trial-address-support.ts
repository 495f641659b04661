import type { Sandbox } from '../../src/sandbox/index.ts';
import { openPipeline } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';

export const TRIAL_DAY = '2025-02-27';

/** The source may have another day for some operations. */
export const MOVERS_DAY = '2025-02-25';

/** A year later, in the morning: nothing of today is published. */
export const clock = { now: () => Date.parse('2026-03-10T09:30:00+05:30') };

export async function trialAddress(): Promise<Sandbox> {
  const behaviour = { trialDay: TRIAL_DAY, trialDays: { GetTop5GainersLosers: MOVERS_DAY } };
  return openSandbox({ clock, instrumentsPerExchange: 60, behaviour });
}

/** A pipeline of such an address that knows what it is. */
export const openTrial = (sandbox: Sandbox) =>
  openPipeline({
    sourceUrl: sandbox.url,
    clock,
    settings: { EOD_TRIAL_DAY: TRIAL_DAY, EOD_INSTRUMENT_LIMIT: '3' },
  });
