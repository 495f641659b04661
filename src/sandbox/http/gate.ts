import type { Clock } from '../../core/clock.ts';
import { dayAt, timeAt } from '../../core/days.ts';
import type { Behaviour } from '../behaviour.ts';
import { ZONE } from '../market/market.ts';
import { Refusal } from '../query.ts';

/** `2026-11-20T21`: a clock hour in India, where quotas start anew (field notes). */
export function clockHour(clock: Clock): string {
  const seconds = Math.floor(clock.now() / 1000);
  return `${dayAt(seconds, ZONE)}T${timeAt(seconds, ZONE).slice(0, 2)}`;
}

/** What the service remembers of its callers: keys, hourly quota, requests it was not ready for. */
export class Gate {
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
   * The key and its quota.
   *
   * @throws Refusal
   */
  admit(key: string | null): void {
    if (key === null || key === '') throw new Refusal('Access Denied. Key unknown or empty.');
    if (this.#accessKey !== undefined && key !== this.#accessKey)
      throw new Refusal('Access Denied. Key not found.');
    this.#calls++;
    const { keyDiesAfter, callsPerHour } = this.#behaviour;
    if (keyDiesAfter !== undefined && this.#calls > keyDiesAfter) throw new Refusal('Key Expired.');
    const hour = clockHour(this.#clock);
    if (hour !== this.#hour) {
      this.#hour = hour;
      this.#callsThisHour = 0;
    }
    if (callsPerHour > 0 && this.#callsThisHour >= callsPerHour)
      throw new Refusal('Calls per hour are limited.');
    this.#callsThisHour++;
  }

  /**
   * The key's rights.
   *
   * @throws Refusal
   */
  allow(operation: string, exchange: string, instruments: readonly string[]): void {
    const { disabledOperations, disabledExchanges, demoInstruments } = this.#behaviour;
    if (disabledOperations.includes(operation)) throw new Refusal('Function not enabled.');
    if (disabledExchanges.includes(exchange)) throw new Refusal('Data for requested exchange is disabled.');
    if (demoInstruments !== undefined && instruments.some((name) => !demoInstruments.includes(name))) {
      throw new Refusal('Instrument is not allowed for Demo key.');
    }
  }

  /**
   * The first asks of each distinct request find the data not ready.
   *
   * @throws Refusal
   */
  ready(request: string): void {
    if (this.#behaviour.notReady === 0) return;
    const count = (this.#asked.get(request) ?? 0) + 1;
    this.#asked.set(request, count);
    if (count <= this.#behaviour.notReady) {
      throw new Refusal('Authentication request received. Try request data in next moment.');
    }
  }
}
