import { messageOf, PipelineError } from '../core/errors.ts';

/** Signals that ask us to stop, and the exit code of work they cut short. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type StopSignal = keyof typeof EXIT_CODES;

/** `npm run` forwards the Ctrl-C that the terminal has sent to us as well: one keystroke, two signals. */
const SAME_KEYSTROKE_MS = 1_000;

/** Everything is closed this long after a signal, or given up. */
const CLOSE_WITHIN_MS = 9_700;

interface Opened {
  readonly close: () => Promise<unknown>;
  readonly abandon: (() => void) | undefined;
}

/** What a command has opened, and how it ends: by itself, or because somebody asked it to stop. */
export interface Lifecycle {
  /** Aborted by the first Ctrl-C, SIGTERM or hang-up. */
  readonly signal: AbortSignal;
  /** Resolves at that moment. */
  readonly stopped: Promise<void>;
  /** Exit code of work that was cut short, null while nobody asked to stop. */
  cutShort(): number | null;
  /**
   * Opens something and remembers how to close it. A signal that comes meanwhile waits for the step
   * to end, so that nothing is left half open.
   *
   * @param abandon what can still be done at once, without waiting, when the process is forced to end.
   * @throws PipelineError `aborted` when somebody asked to stop.
   */
  open<T>(
    step: () => Promise<T>,
    close?: (opened: T) => Promise<unknown>,
    abandon?: (opened: T) => void,
  ): Promise<T>;
  /**
   * Does work during which Ctrl-C is for a program that this one has started: the terminal sends it to both.
   */
  leavingInterrupts<T>(work: () => Promise<T>): Promise<T>;
  /** Closes everything, the last opened first. Safe to call again. @returns what did not close, and why. */
  close(): Promise<string[]>;
  /** For an error nobody caught: lets go of everything without waiting. */
  abandon(): void;
}

/** The process, as far as its end is concerned. */
export interface Host {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  exit(code: number): void;
}

/** Listens for signals from now on; the only place that does. */
export function createLifecycle(host: Host = process): Lifecycle {
  const abort = new AbortController();
  const stack: Opened[] = [];
  let received: StopSignal | null = null;
  let receivedAt = 0;
  let opening = 0;
  let leaving = 0;

  const abandon = () => {
    for (const opened of stack.splice(0).reverse()) opened.abandon?.();
  };
  const force = (code: number, why: string) => {
    process.stderr.write(`eod: ${why}\n`);
    abandon();
    host.exit(code);
  };
  const limitClosing = () => {
    const code = EXIT_CODES[received ?? 'SIGINT'];
    setTimeout(() => force(code, 'not everything closed in time; ended anyway'), CLOSE_WITHIN_MS).unref();
  };
  const onSignal = (name: StopSignal) => {
    if (name === 'SIGINT' && leaving > 0) return;
    if (received === null) {
      received = name;
      receivedAt = Date.now();
      if (opening === 0) limitClosing();
      abort.abort();
    } else if (name === 'SIGINT' && Date.now() - receivedAt > SAME_KEYSTROKE_MS) {
      force(EXIT_CODES.SIGINT, 'ended at once');
    }
  };
  for (const name of Object.keys(EXIT_CODES) as StopSignal[]) host.on(name, () => onSignal(name));

  const stopped = new Promise<void>((resolve) => {
    abort.signal.addEventListener('abort', () => resolve(), { once: true });
  });

  return {
    signal: abort.signal,
    stopped,
    cutShort: () => (received === null ? null : EXIT_CODES[received]),
    async open(step, close, abandonOpened) {
      throwIfStopped(abort.signal);
      opening += 1;
      try {
        const opened = await step();
        stack.push({
          close: async () => close?.(opened),
          abandon: abandonOpened && (() => abandonOpened(opened)),
        });
        return opened;
      } finally {
        opening -= 1;
        if (abort.signal.aborted && opening === 0) limitClosing();
        throwIfStopped(abort.signal);
      }
    },
    async leavingInterrupts(work) {
      leaving += 1;
      try {
        return await work();
      } finally {
        leaving -= 1;
      }
    },
    async close() {
      const problems: string[] = [];
      for (let opened = stack.pop(); opened !== undefined; opened = stack.pop()) {
        await opened.close().catch((error) => problems.push(messageOf(error)));
      }
      return problems;
    },
    abandon,
  };
}

function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw new PipelineError('stopped by a signal', { kind: 'aborted' });
}
