import { channel } from 'node:diagnostics_channel';
import type { ErrorKind } from './errors.ts';
import type { Pair } from './exchanges.ts';

/** Something that happens in this process, published for metrics. */
interface Event<Message> {
  /** For callers whose message takes work to make. */
  hasSubscribers(): boolean;
  publish(message: Message): void;
  /** @returns a function that ends the subscription. */
  subscribe(listener: (message: Message) => void): () => void;
}

function event<Message extends object>(name: string): Event<Message> {
  const subject = channel(name);
  return {
    hasSubscribers: () => subject.hasSubscribers,
    publish(message) {
      if (subject.hasSubscribers) subject.publish(message);
    },
    subscribe(listener) {
      const onMessage = (message: unknown) => listener(message as Message);
      subject.subscribe(onMessage);
      return () => {
        subject.unsubscribe(onMessage);
      };
    },
  };
}

/** A call to the source has ended. */
export const sourceCallEnded = event<
  Pair & { readonly seconds: number; readonly outcome: 'success' | ErrorKind }
>('eod:source-call-ended');

/** A window has ended: its response is stored, or it was given up. */
export const windowEnded = event<
  Pair & {
    readonly state: 'loaded' | 'failed' | 'blocked';
    /** Number of rows by outcome (`inserted`, `updated`, …); empty where the window was given up. */
    readonly rows: Readonly<Record<string, number>>;
  }
>('eod:window-ended');

/** How many responses of this process wait until Postgres can store them. */
export const responsesWaiting = event<{ readonly responses: number }>('eod:responses-waiting');

/** A run has ended. */
export const runEnded = event<{
  readonly run: number;
  /** Id of its database, because run numbers are unique only within one. */
  readonly database: string;
  readonly kind: string;
  readonly state: string;
  readonly from: string;
  readonly to: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly finishedAt: string;
}>('eod:run-ended');
