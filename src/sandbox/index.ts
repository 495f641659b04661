import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadCalendar } from '../calendar/calendar.ts';
import { systemClock } from '../core/clock.ts';
import type { Day } from '../core/days.ts';
import { messageOf, usageError } from '../core/errors.ts';
import { operations } from '../operations/registry.ts';
import { DEFAULT_BEHAVIOUR, DEFAULT_INSTRUMENTS, type SandboxOptions } from './behaviour.ts';
import { bhavcopy } from './datasets/bhavcopy.ts';
import { classification, pledge } from './datasets/company-responses.ts';
import { categories, corporateActions } from './datasets/corporate-action-responses.ts';
import { circuitBreakers, gainersLosers, highlights, seriesChanges } from './datasets/market-activity.ts';
import { financialRatios } from './datasets/ratios.ts';
import { createResponder } from './http/sandbox-server.ts';
import { Market } from './market/market.ts';
import type { DataSet } from './response/dataset.ts';

export { type Behaviour, EXAMPLE_KEY, type SandboxOptions } from './behaviour.ts';
export { type Fault, parseFault } from './faults.ts';
export type { SandboxStats, SeenRequest } from './http/key-access.ts';
export type { Split } from './market/splits.ts';

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** The data of each operation's responses. Of an operation that is not listed the sample is served. */
const dataSets: Readonly<Record<string, DataSet>> = {
  GetBhavCopyCM: bhavcopy,
  GetCircuitBreakers: circuitBreakers,
  GetConsolidatedPledge: pledge,
  GetCorporateActions: corporateActions,
  GetCorporateActionsCategories: categories,
  GetFinancialRatios: financialRatios,
  GetFinRatioEOD: financialRatios,
  GetFinRatioSnapshot: financialRatios,
  GetSectoralClassification: classification,
  GetSeriesChange: seriesChanges,
  GetTop5GainersLosers: gainersLosers,
  GetTotalTradeHighlights: highlights,
};

/**
 * Starts a simulated source service, for demos, tests and trials without a key.
 *
 * @throws PipelineError `usage` if the port is in use.
 */
export async function startSandbox(options: SandboxOptions = {}) {
  const { port = 0, host = '127.0.0.1', clock = systemClock } = options;
  const behaviour = { ...DEFAULT_BEHAVIOUR, ...options.behaviour };
  const market = new Market({
    calendar: options.calendar ?? loadCalendar(),
    clock,
    instrumentsPerExchange: options.instrumentsPerExchange ?? DEFAULT_INSTRUMENTS,
    revision: options.revision ?? 0,
    splits: options.splits ?? false,
  });
  const responder = createResponder({
    operations,
    market,
    clock,
    behaviour,
    accessKey: options.accessKey,
    dataSets: { ...dataSets, ...options.dataSets },
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
    stats: responder.stats,
    /** Splits and consolidations with an ex-date in a range of days; none without the option `splits`. */
    splits: (from: Day, to: Day) => market.splits?.between(from, to) ?? [],
    /** Stops at once; open requests are cut off. */
    close() {
      closing ??= close();
      return closing;
    },
  };
}
