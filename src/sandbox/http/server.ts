import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock.ts';
import { daysBetween } from '../../core/days.ts';
import { messageOf } from '../../core/errors.ts';
import type { Operation } from '../../operations/operation.ts';
import { operations } from '../../operations/registry.ts';
import { answer } from '../answer/answer.ts';
import type { Behaviour } from '../behaviour.ts';
import type { Answering } from '../datasets/dataset.ts';
import { type Fault, FaultPlan } from '../faults.ts';
import type { Market } from '../market/market.ts';
import { type Query, Refusal } from '../query.ts';
import { Gate } from './gate.ts';
import { readQuery } from './parameters.ts';
import { pause, plain, send, spoil, strikeAtOnce, TEXT } from './reply.ts';
import { Ledger } from './stats.ts';

export interface ServerParts {
  readonly market: Market;
  readonly behaviour: Behaviour;
  readonly clock: Clock;
  readonly accessKey: string | undefined;
  readonly answering: ReadonlyMap<string, Answering>;
}

const LISTED_BY_DEFAULT = 100;

/** Answers requests; the order of its checks is that of a service: key, quota, rights, parameters, data. */
export class Responder {
  readonly ledger: Ledger;
  readonly #parts: ServerParts;
  readonly #gate: Gate;
  readonly #faults: FaultPlan;
  readonly #byPath = new Map(operations.map((operation) => [`/${operation.name}`, operation]));

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.ledger = new Ledger(parts.clock);
    this.#gate = new Gate(parts.behaviour, parts.clock, parts.accessKey);
    this.#faults = new FaultPlan(parts.behaviour.faults, parts.behaviour.seed);
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const target = `http://sandbox${request.url ?? '/'}`;
    if (!URL.canParse(target)) {
      plain(response, 400, 'Bad request.');
      return;
    }
    const url = new URL(target);
    if (request.method !== 'GET') {
      response.setHeader('allow', 'GET');
      plain(response, 405, 'Only GET is allowed.');
      return;
    }
    if (url.pathname.startsWith('/_sandbox/')) {
      this.#own(url, response);
      return;
    }
    const operation = this.#byPath.get(url.pathname);
    if (operation === undefined) {
      plain(response, 404, 'Function not found.');
      return;
    }
    this.ledger.begin(operation.name, url.searchParams);
    response.once('close', () => this.ledger.end());
    void this.#answer(operation, url.searchParams, request, response).catch((error: unknown) =>
      this.#fail(response, error),
    );
  };

  async #answer(
    operation: Operation,
    search: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { behaviour, market, answering } = this.#parts;
    if (behaviour.delayMs > 0) await pause(response, behaviour.delayMs);
    this.#gate.admit(search.get('accessKey'));
    const early = this.#faults.next(operation.name, null);
    if (this.#struck(response, early)) return;
    const query = readQuery(operation, search, behaviour.dialect, this.#reach(operation), market);
    const fault = early ?? this.#faults.next(operation.name, daysOf(query));
    if (early === null && this.#struck(response, fault)) return;
    this.#gate.allow(operation.name, query.exchange, query.instruments);
    this.#gate.ready(requestKey(operation, search));
    const reply = await answer(market, query, behaviour, answering);
    const gzipped = behaviour.gzip && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
    if (fault === null) await send(response, reply, gzipped);
    else await spoil(response, reply, gzipped, fault);
  }

  /**
   * Counts a fault, and is true when it leaves nothing to answer.
   *
   * @throws Refusal
   */
  #struck(response: ServerResponse, fault: Fault | null): boolean {
    if (fault === null) return false;
    this.ledger.fault(fault.kind);
    if (fault.kind === 'diagnostic') throw new Refusal(fault.value ?? '');
    return strikeAtOnce(response, fault);
  }

  #reach(operation: Operation) {
    const { maxRangeDays, historyDays } = this.#parts.behaviour;
    return {
      maxRangeDays: typeof maxRangeDays === 'object' ? maxRangeDays[operation.name] : maxRangeDays,
      historyDays,
    };
  }

  /** The sandbox's own pages, for tests and the curious. */
  #own(url: URL, response: ServerResponse): void {
    const last = Number(url.searchParams.get('last') ?? LISTED_BY_DEFAULT);
    const page =
      url.pathname === '/_sandbox/stats'
        ? this.ledger.stats()
        : url.pathname === '/_sandbox/requests'
          ? this.ledger.recent(last)
          : null;
    if (page === null) {
      plain(response, 404, 'Not found.');
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(page));
  }

  #fail(response: ServerResponse, error: unknown): void {
    if (response.destroyed) return;
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (error instanceof Refusal) {
      this.ledger.diagnostic(error.message);
      response.writeHead(200, { 'content-type': TEXT });
      response.end(error.message);
      return;
    }
    plain(response, 500, messageOf(error));
  }
}

/** Days of the range asked for; 1 where there is none. */
function daysOf({ range }: Query): number {
  return range === null ? 1 : daysBetween(range.from, range.to) + 1;
}

function requestKey(operation: Operation, search: URLSearchParams): string {
  const params = [...search].filter(([name]) => name !== 'accessKey').sort();
  return JSON.stringify([operation.name, params]);
}
