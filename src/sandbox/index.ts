import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Calendar, loadCalendar } from '../calendar/calendar.ts';
import { type Day, dayEnd } from '../core/days.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { operations } from '../operations/registry.ts';
import { DEFAULT_BEHAVIOUR, DEFAULT_SETTINGS, type SandboxOptions } from './behaviour.ts';
import { bhavcopy, findBhavcopies, realBhavcopy } from './datasets/bhavcopy.ts';
import { classification, pledge } from './datasets/company-responses.ts';
import { actionDataSets, categories, corporateActions } from './datasets/corporate-action-responses.ts';
import { marketActivity } from './datasets/market-activity.ts';
import { ratioDataSets } from './datasets/ratios.ts';
import { Responder } from './http/sandbox-server.ts';
import { Market, ZONE } from './market/market.ts';
import type { OperationDataSets } from './response/dataset.ts';

export type { Behaviour, OpenPointName, SandboxOptions } from './behaviour.ts';
export type { Fault } from './faults.ts';
export { CONTRARY, OPEN_POINTS, sandboxFlags, sandboxOptionsFromFlags } from './flags.ts';
export type { SandboxStats, SeenRequest } from './http/key-access.ts';
export type { Split } from './market/splits.ts';
export { parseFault } from './notations.ts';

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** A key to show and to use where any will do. It is no word, so hiding it hides nothing else of a text. */
export const EXAMPLE_KEY = 'demo-key-1234';

let builtIn: Calendar | undefined;

/** The built-in calendar, shared by all sandboxes of a process, which then also share the prices computed from it. */
function defaultCalendar(): Calendar {
  builtIn ??= loadCalendar();
  return builtIn;
}

function dataSetsFor(dataDir: string | undefined): ReadonlyMap<string, OperationDataSets> {
  if (dataDir === undefined) return dataSets;
  return new Map(dataSets).set('GetBhavCopyCM', { sample: realBhavcopy(findBhavcopies(dataDir)) });
}

/**
 * Starts a simulated source service, for demos, tests and trials without a key.
 *
 * @throws PipelineError `usage` if the port is in use, or a file of `dataDir` cannot be read.
 */
export async function startSandbox(options: SandboxOptions = {}) {
  const { port, host, clock, instrumentsPerExchange, revision } = {
    ...DEFAULT_SETTINGS,
    ...options,
  };
  const behaviour = { ...DEFAULT_BEHAVIOUR, ...options.behaviour };
  const { trialDay, trialDays } = behaviour;
  const trialEnd = [trialDay, ...Object.values(trialDays)]
    .filter((day) => day !== undefined)
    .sort()
    .at(-1);
  const market = new Market({
    calendar: options.calendar ?? defaultCalendar(),
    // At a trial address, its day is always over.
    clock: trialEnd === undefined ? clock : { now: () => 1000 * dayEnd(trialEnd, ZONE) },
    instrumentsPerExchange,
    revision,
    splits: options.splits ?? false,
  });
  const responder = new Responder({
    operations,
    market,
    clock,
    behaviour,
    accessKey: options.accessKey,
    dataSets: dataSetsFor(options.dataDir),
  });
  const server = createServer(responder.handle);
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw usageError(`the sandbox cannot listen on ${host}:${port}: ${messageOf(error)}`);
  }
  const bound = (server.address() as AddressInfo).port;
  let closing: Promise<void> | undefined;
  const close = async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return {
    /** Base URL, without a slash at its end. */
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    stats: () => responder.requests.stats(),
    /** The newest day whose data is published by now. */
    publishedUntil: () => market.publishedUntil(),
    /** Splits and consolidations with an ex-date in a range of days; none without the option `splits`. */
    splits: (from: Day, to: Day) => market.splits?.between(from, to) ?? [],
    /** Stops at once; open requests are cut off. */
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** The data of each operation's responses. An operation that is not listed is given invented records. */
const dataSets: ReadonlyMap<string, OperationDataSets> = new Map<string, OperationDataSets>([
  ...Object.entries(marketActivity),
  ['GetBhavCopyCM', { sample: bhavcopy }],
  ['GetConsolidatedPledge', { sample: pledge, declared: corporateActions }],
  ['GetCorporateActions', actionDataSets],
  ['GetCorporateActionsCategories', { sample: categories, declared: corporateActions }],
  ['GetFinancialRatios', ratioDataSets],
  ['GetFinRatioEOD', ratioDataSets],
  ['GetFinRatioSnapshot', ratioDataSets],
  ['GetSectoralClassification', { sample: classification }],
]);
