import type { Clock } from '../../core/clock.ts';
import { dayAt, timeAt } from '../../core/days.ts';
import type { Behaviour } from '../behaviour.ts';
import { ZONE } from '../market/market.ts';
import { Diagnostic } from '../request-query.ts';

/** The clock hour in India, e.g. `2026-11-20T21`. The hourly quota is reset at its end. */
export function clockHour(clock: Clock): string {
  const seconds = Math.floor(clock.now() / 1000);
  return `${dayAt(seconds, ZONE)}T${timeAt(seconds, ZONE).slice(0, 2)}`;
}

/** Their data is to be asked of GetFinancialRatios. */
const WITHDRAWN_RATIOS = ['GetFinRatioEOD', 'GetFinRatioSnapshot'];

/** Checks keys, their hourly quota and rights, and whether a request is ready. */
export class AccessControl {
  readonly #behaviour: Behaviour;
  readonly #clock: Clock;
  readonly #accessKey: string | undefined;
  #hour = '';
  #callsThisHour = 0;
  #calls = 0;
  readonly #asked = new Map<string, number>();

  constructor(behaviour: Behaviour, clock: Clock, accessKey: string | undefined) {
    this.#behaviour = behaviour;
    this.#clock = clock;
    this.#accessKey = accessKey;
  }

  /**
   * Checks the key and counts the call against its quota.
   *
   * @throws Diagnostic with the line to answer.
   */
  checkKey(key: string | null): void {
    if (key === null || key === '') throw new Diagnostic('Access Denied. Key unknown or empty.');
    if (this.#accessKey !== undefined && key !== this.#accessKey)
      throw new Diagnostic('Access Denied. Key not found.');
    this.#calls++;
    const { keyDiesAfter, callsPerHour } = this.#behaviour;
    if (keyDiesAfter !== undefined && this.#calls > keyDiesAfter) throw new Diagnostic('Key Expired.');
    const hour = clockHour(this.#clock);
    if (hour !== this.#hour) {
      this.#hour = hour;
      this.#callsThisHour = 0;
    }
    if (callsPerHour > 0 && this.#callsThisHour >= callsPerHour)
      throw new Diagnostic('Calls per hour are limited.');
    this.#callsThisHour++;
  }

  /** May the key call this operation? */
  isEnabled(operation: string): boolean {
    const { disabledOperations, withdrawnRatios } = this.#behaviour;
    const isWithdrawn = withdrawnRatios && WITHDRAWN_RATIOS.includes(operation);
    return !isWithdrawn && !disabledOperations.includes(operation);
  }

  /** @throws Diagnostic if the key may not call this operation. */
  checkOperation(operation: string): void {
    if (!this.isEnabled(operation)) throw new Diagnostic('Function not enabled.');
  }

  /**
   * Checks the rights of the key.
   *
   * @throws Diagnostic with the line to answer.
   */
  checkRights(operation: string, exchange: string, instruments: readonly string[]): void {
    const { disabledExchanges, demoInstruments } = this.#behaviour;
    this.checkOperation(operation);
    if (disabledExchanges.includes(exchange))
      throw new Diagnostic('Data for requested exchange is disabled.');
    if (demoInstruments !== undefined && instruments.some((name) => !demoInstruments.includes(name))) {
      throw new Diagnostic('Instrument is not allowed for Demo key.');
    }
  }

  /**
   * Answers the first calls of each distinct request that it is not ready.
   *
   * @throws Diagnostic with the line to answer.
   */
  checkReady(request: string): void {
    if (this.#behaviour.notReady === 0) return;
    const count = (this.#asked.get(request) ?? 0) + 1;
    this.#asked.set(request, count);
    if (count <= this.#behaviour.notReady) {
      throw new Diagnostic('Authentication request received. Try request data in next moment.');
    }
  }
}
