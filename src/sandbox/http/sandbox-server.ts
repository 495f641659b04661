import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock.ts';
import { daysBetween } from '../../core/days.ts';
import { messageOf } from '../../core/errors.ts';
import type { Operation } from '../../declaration/operation.ts';
import type { Behaviour } from '../behaviour.ts';
import { type Fault, FaultPlan } from '../faults.ts';
import type { Market } from '../market/market.ts';
import { Diagnostic, type Query } from '../request-query.ts';
import type { DataSet } from '../response/dataset.ts';
import { pause, plain, send, sendDamaged, sendFault } from '../response/reply.ts';
import { createResponse } from '../response/source-response.ts';
import { AccessControl, RequestLog } from './key-access.ts';
import { readQuery } from './parameters.ts';

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
export class Responder {
  readonly requests: RequestLog;
  readonly #parts: ServerParts;
  readonly #access: AccessControl;
  readonly #faults: FaultPlan;
  readonly #byPath: ReadonlyMap<string, Operation>;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#byPath = new Map(parts.operations.map((operation) => [`/${operation.name}`, operation]));
    this.requests = new RequestLog(parts.clock);
    this.#access = new AccessControl(parts.behaviour, parts.clock, parts.accessKey);
    this.#faults = new FaultPlan(parts.behaviour.faults);
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader('date', new Date(this.#parts.clock.now()).toUTCString());
    const target = `http://sandbox${request.url ?? '/'}`;
    if (!URL.canParse(target)) return void plain(response, 400, 'Bad request.');
    const url = new URL(target);
    if (request.method !== 'GET') {
      response.setHeader('allow', 'GET');
      return void plain(response, 405, 'Only GET is allowed.');
    }
    if (url.pathname.startsWith('/_sandbox/')) return void this.#own(url.pathname, response);
    const operation = this.#byPath.get(url.pathname);
    if (operation === undefined) return void plain(response, 404, 'Function not found.');
    this.requests.begin(operation.name, url.searchParams);
    void this.#respond(operation, url.searchParams, response).catch((error: unknown) =>
      this.#fail(response, error),
    );
  };

  async #respond(operation: Operation, search: URLSearchParams, response: ServerResponse): Promise<void> {
    const { behaviour, market, dataSets } = this.#parts;
    if (behaviour.delayMs > 0) await pause(response, behaviour.delayMs);
    this.#access.checkKey(search.get('accessKey'));
    const early = this.#faults.next(operation.name, search, null);
    if (this.#applyFault(response, early)) return;
    const query = readQuery(operation, search, behaviour, market);
    const fault = early ?? this.#faults.next(operation.name, search, countDays(query));
    if (early === null && this.#applyFault(response, fault)) return;
    this.#access.checkReady(requestKey(operation, search));
    const reply = createResponse(market, query, behaviour, dataSets[operation.name]);
    if (fault === null) send(response, reply);
    else await sendDamaged(response, reply, fault);
  }

  /**
   * Counts a fault, and sends it if it needs no data.
   *
   * @returns whether a response was sent.
   * @throws Diagnostic for a fault that is a diagnostic line.
   */
  #applyFault(response: ServerResponse, fault: Fault | null): boolean {
    if (fault === null) return false;
    this.requests.countFault(fault.kind);
    if (fault.kind === 'diagnostic') throw new Diagnostic(fault.value ?? '');
    return sendFault(response, fault);
  }

  /** The sandbox's own pages: statistics and the newest requests. */
  #own(path: string, response: ServerResponse): void {
    const pages: Readonly<Record<string, () => unknown>> = {
      '/_sandbox/stats': () => this.requests.stats(),
      '/_sandbox/requests': () => this.requests.recent(),
    };
    const page = pages[path];
    if (page === undefined) return void plain(response, 404, 'Not found.');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(page()));
  }

  #fail(response: ServerResponse, error: unknown): void {
    if (response.destroyed) return;
    if (response.headersSent) {
      response.destroy();
    } else if (error instanceof Diagnostic) {
      this.requests.countDiagnostic(error.message);
      plain(response, 200, error.message);
    } else {
      plain(response, 500, messageOf(error));
    }
  }
}

/** The number of days in the requested range; 1 if there is none. */
function countDays({ range }: Query): number {
  return range === null ? 1 : daysBetween(range.from, range.to) + 1;
}

function requestKey(operation: Operation, search: URLSearchParams): string {
  const params = [...search].filter(([name]) => name !== 'accessKey').sort();
  return JSON.stringify([operation.name, params]);
}
