import { messageOf, throwIfStopped } from '../core/errors.ts';

/** The signals that stop this process, and the exit code of work they interrupt. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type StopSignal = keyof typeof EXIT_CODES;

/** Under `npm run` one Ctrl-C arrives twice: the terminal sends it to every process, and npm forwards it. */
const SAME_KEYSTROKE_MS = 1_000;

/** After a signal, closing may take this long; then the process exits anyway. */
const CLOSE_WITHIN_MS = 9_700;

interface Opened {
  readonly close: () => Promise<unknown>;
  readonly abandon: (() => void) | undefined;
}

/** Keeps track of what a command has opened, and of signals that stop it. */
export type Lifecycle = ReturnType<typeof createLifecycle>;

/** The parts of `process` that a lifecycle uses. */
interface Host {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  exit(code: number): void;
  readonly stderr: { write(text: string): unknown };
}

const closeOpened = async (opened: unknown): Promise<unknown> =>
  (opened as { close?: () => unknown } | null | undefined)?.close?.();

/** Listens for signals from now on; nothing else in `eod` does. */
export function createLifecycle(host: Host = process) {
  const abort = new AbortController();
  const stack: Opened[] = [];
  let received: StopSignal | null = null;
  let receivedAt = 0;
  let opening = 0;

  const abandon = () => {
    for (const opened of stack.splice(0).reverse()) opened.abandon?.();
  };
  const force = (code: number, why: string) => {
    host.stderr.write(`eod: ${why}\n`);
    abandon();
    host.exit(code);
  };
  const limitClosing = () => {
    const code = EXIT_CODES[received ?? 'SIGINT'];
    setTimeout(() => force(code, 'not everything closed in time; ended anyway'), CLOSE_WITHIN_MS).unref();
  };
  const onSignal = (name: StopSignal) => {
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
    /** Aborted by the first Ctrl-C (SIGINT), SIGTERM or SIGHUP. */
    signal: abort.signal,
    /** Resolves when `signal` is aborted. */
    stopped,
    /** The exit code if a signal has come, else null. */
    cutShort: () => (received === null ? null : EXIT_CODES[received]),
    /**
     * Opens something and remembers how to close it. If a signal comes meanwhile, the step is still finished, so that
     * nothing stays half open.
     *
     * @param close by default calls its `close`, if it has one.
     * @param abandonOpened what can be done at once, without waiting, when the process is forced to exit.
     * @throws PipelineError `aborted` if a signal has come.
     */
    async open<T>(
      step: () => Promise<T>,
      close: (opened: T) => Promise<unknown> = closeOpened,
      abandonOpened?: (opened: T) => void,
    ): Promise<T> {
      throwIfStopped(abort.signal);
      opening += 1;
      try {
        const opened = await step();
        stack.push({
          close: async () => close(opened),
          abandon: abandonOpened && (() => abandonOpened(opened)),
        });
        return opened;
      } finally {
        opening -= 1;
        if (abort.signal.aborted && opening === 0) limitClosing();
        throwIfStopped(abort.signal);
      }
    },
    /** Closes everything, the last opened first. Safe to call again. @returns the errors of what did not close. */
    async close(): Promise<string[]> {
      const problems: string[] = [];
      for (let opened = stack.pop(); opened !== undefined; opened = stack.pop()) {
        await opened.close().catch((error) => problems.push(messageOf(error)));
      }
      return problems;
    },
    /** Lets go of everything without waiting, after an uncaught error. */
    abandon,
  };
}
