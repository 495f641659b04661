import { channel } from 'node:diagnostics_channel';
import type { ErrorKind } from './errors.ts';

/** What happens in this process, told to whoever wants to count it. */
interface Event<Message> {
  /** Does anybody want to know? Where a message costs something to make. */
  isHeard(): boolean;
  publish(message: Message): void;
  /** @returns a function that ends this. */
  subscribe(listener: (message: Message) => void): () => void;
}

function event<Message extends object>(name: string): Event<Message> {
  const subject = channel(name);
  return {
    isHeard: () => subject.hasSubscribers,
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

interface Asked {
  readonly operation: string;
  readonly exchange: string;
}

/** A call to the source has ended. */
export const sourceCallEnded = event<
  Asked & { readonly seconds: number; readonly outcome: 'success' | ErrorKind }
>('eod:source-call-ended');

/** A window has ended: its answer is stored, or it was given up. */
export const windowEnded = event<
  Asked & {
    readonly state: 'loaded' | 'failed' | 'blocked';
    /** Rows by what became of them; none where it was given up. */
    readonly rows: Readonly<Record<string, number>>;
  }
>('eod:window-ended');

/** A run has ended. */
export const runEnded = event<{
  readonly run: number;
  /** Id of its database: others have runs of the same number. */
  readonly database: string;
  readonly kind: string;
  readonly state: string;
  readonly from: string;
  readonly to: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly finishedAt: string;
}>('eod:run-ended');
