import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A TypeScript program of `bench/`, and the messages it exchanges with us. */
export interface Helper {
  /** The next message it sends. @throws Error when it ends instead. */
  next<Message>(): Promise<Message>;
  send(message: object): void;
  /** Ends it, if it has not ended by itself. */
  stop(): Promise<void>;
}

/** Starts a program beside this one; it ends with us whatever happens. */
export function startHelper(name: string, args: readonly string[] = []): Helper {
  const file = fileURLToPath(new URL(`../${name}`, import.meta.url));
  const child = fork(file, args, { execArgv: ['--import', 'tsx', ...profiling()], stdio: 'inherit' });
  return {
    async next<Message>() {
      const ended = new AbortController();
      const exit = once(child, 'exit', ended).then(([code]) => {
        throw new Error(`bench/${name} has ended with code ${code}`);
      });
      try {
        const [message] = await Promise.race([once(child, 'message', ended), exit]);
        return message as Message;
      } finally {
        exit.catch(() => undefined);
        ended.abort();
      }
    },
    send: (message) => void child.send(message),
    stop: () => stopChild(child),
  };
}

/** `node --cpu-prof …` on the benchmark profiles its helpers too. */
function profiling(): string[] {
  return process.execArgv.filter((option) => option.startsWith('--cpu-prof'));
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill();
  await gone;
}
