import { dayEnd, dayStart } from '../../../src/core/days.ts';
import { closeAfterFile } from '../../support/closing.ts';
import { startServer } from '../../support/http-server.ts';
import { openPipeline } from '../../support/pipeline.ts';
import { openSandbox } from '../../support/sandbox.ts';

export const TRIAL_DAY = '2025-02-27';

/** The source may have another day for some operations. */
export const MOVERS_DAY = '2025-02-25';

/** A year later, in the morning: nothing of today is published. */
export const clock = { now: () => Date.parse('2026-03-10T09:30:00+05:30') };

/** A server that responds to each request as if its day had been requested. */
export async function trialAddress(): Promise<{ readonly url: string }> {
  const evening = { now: () => Date.parse(`${TRIAL_DAY}T23:00:00+05:30`) };
  const sandbox = await openSandbox({ clock: evening, instrumentsPerExchange: 60 });
  const url = await startServer(async (request, response) => {
    const target = new URL(request.url ?? '', sandbox.url);
    const day = target.pathname === '/GetTop5GainersLosers' ? MOVERS_DAY : TRIAL_DAY;
    const [first, last] = [dayStart(day, 'Asia/Kolkata'), dayEnd(day, 'Asia/Kolkata')].map(String) as [
      string,
      string,
    ];
    for (const [name, time] of Object.entries({ date: first, from: first, to: last }))
      if (target.searchParams.has(name)) target.searchParams.set(name, time);
    response.setHeader('date', new Date(clock.now()).toUTCString());
    response.end(await (await fetch(target)).text());
  }, closeAfterFile);
  return { url };
}

/** A pipeline of such an address that knows what it is. */
export const openTrial = ({ url }: { readonly url: string }) =>
  openPipeline({
    sourceUrl: url,
    clock,
    settings: { EOD_TRIAL_DAY: TRIAL_DAY, EOD_INSTRUMENT_LIMIT: '3' },
  });
