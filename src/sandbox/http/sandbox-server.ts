import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock.ts';
import { daysBetween } from '../../core/days.ts';
import { messageOf } from '../../core/errors.ts';
import type { Operation } from '../../declaration/operation.ts';
import type { Behaviour } from '../behaviour.ts';
import type { CheckedRequest } from '../checked-request.ts';
import { Diagnostic } from '../diagnostic.ts';
import { type Fault, planFaults } from '../faults.ts';
import type { Market } from '../market/market.ts';
import type { DataSet } from '../response/dataset.ts';
import { pause, plain, send, sendDamaged, sendFault } from '../response/reply.ts';
import { createResponse } from '../response/source-response.ts';
import { createAccessControl, createRequestLog } from './key-access.ts';
import { checkRequest } from './parameters.ts';

interface ServerParts {
  readonly operations: readonly Operation[];
  readonly market: Market;
  readonly behaviour: Behaviour;
  readonly clock: Clock;
  readonly accessKey: string | undefined;
  /** By operation; of the others, the sample is served. */
  readonly dataSets: Readonly<Record<string, DataSet>>;
}

/**
 * Responds to requests. It checks in this order: key, quota, faults, parameters, faults with `minDays`, readiness.
 */
export function createResponder({ operations, market, behaviour, clock, accessKey, dataSets }: ServerParts) {
  const byPath = new Map(operations.map((operation) => [`/${operation.name}`, operation]));
  const requests = createRequestLog(clock);
  const access = createAccessControl(behaviour, clock, accessKey);
  const nextFault = planFaults(behaviour.faults);
  /** The sandbox's own pages: statistics and the newest requests. */
  const pages: Readonly<Record<string, () => unknown>> = {
    '/_sandbox/stats': requests.stats,
    '/_sandbox/requests': requests.recent,
  };

  /**
   * Counts a fault, and sends it if it needs no data.
   *
   * @returns whether a response was sent.
   * @throws Diagnostic for a fault that is a diagnostic line.
   */
  function applyFault(response: ServerResponse, fault: Fault | null): boolean {
    if (fault === null) return false;
    requests.countFault(fault.kind);
    if (fault.kind === 'diagnostic') throw new Diagnostic(fault.value ?? '');
    return sendFault(response, fault);
  }

  async function respond(operation: Operation, search: URLSearchParams, response: ServerResponse) {
    if (behaviour.delayMs > 0) await pause(response, behaviour.delayMs);
    access.checkKey(search.get('accessKey'));
    const early = nextFault(operation.name, search, null);
    if (applyFault(response, early)) return;
    const request = checkRequest(operation, search, behaviour, market);
    const fault = early ?? nextFault(operation.name, search, countDays(request));
    if (early === null && applyFault(response, fault)) return;
    access.checkReady(requestKey(operation, search));
    const reply = createResponse(market, request, behaviour, dataSets[operation.name]);
    if (fault === null) send(response, reply);
    else await sendDamaged(response, reply, fault);
  }

  function fail(response: ServerResponse, error: unknown): void {
    if (response.destroyed) return;
    if (response.headersSent) {
      response.destroy();
    } else if (error instanceof Diagnostic) {
      requests.countDiagnostic(error.message);
      plain(response, 200, error.message);
    } else {
      plain(response, 500, messageOf(error));
    }
  }

  function handle(request: IncomingMessage, response: ServerResponse) {
    response.setHeader('date', new Date(clock.now()).toUTCString());
    const target = `http://sandbox${request.url ?? '/'}`;
    if (!URL.canParse(target)) return plain(response, 400, 'Bad request.');
    const { pathname, searchParams } = new URL(target);
    if (request.method !== 'GET') {
      response.setHeader('allow', 'GET');
      return plain(response, 405, 'Only GET is allowed.');
    }
    const page = pages[pathname];
    if (page !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' });
      return void response.end(JSON.stringify(page()));
    }
    const operation = byPath.get(pathname);
    if (operation === undefined) return plain(response, 404, 'Function not found.');
    requests.begin(operation.name, searchParams);
    void respond(operation, searchParams, response).catch((error: unknown) => fail(response, error));
  }

  return { handle, stats: requests.stats };
}

/** The number of days in the requested range; 1 if there is none. */
function countDays({ range }: CheckedRequest): number {
  return range === null ? 1 : daysBetween(range.from, range.to) + 1;
}

function requestKey(operation: Operation, search: URLSearchParams): string {
  const params = [...search].filter(([name]) => name !== 'accessKey').sort();
  return JSON.stringify([operation.name, params]);
}
