import { channel } from 'node:diagnostics_channel';
import type { ErrorKind } from './errors.ts';
import type { Pair } from './exchanges.ts';

/** Something that happens in this process, published for metrics. */
interface Event<Message> {
  publish(message: Message): void;
  /** @returns a function that ends the subscription. */
  subscribe(listener: (message: Message) => void): () => void;
}

function event<Message extends object>(name: string): Event<Message> {
  const subject = channel(name);
  return {
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
    readonly state: 'loaded' | 'failed' | 'blocked' | 'skipped';
    /** Number of rows by outcome (`inserted`, `updated`, …); empty where the window was given up. */
    readonly rows: Readonly<Record<string, number>>;
    /** Whether its response had fields that no column reads. */
    readonly hasUnknownFields: boolean;
  }
>('eod:window-ended');

/** How many responses of this process wait until Postgres can store them. */
export const responsesWaiting = event<{ readonly responses: number }>('eod:responses-waiting');
