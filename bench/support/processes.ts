import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ChildTask } from './child.ts';
import type { SourceMode } from './records.ts';

/** A TypeScript program of this folder, and the messages it exchanges with us. */
interface Helper {
  /** The next message it sends. @throws Error when it ends instead. */
  next<Message>(): Promise<Message>;
  send(message: object): void;
  /** Ends it, if it has not ended on its own. */
  stop(): Promise<void>;
}

/** Starts a program beside this one; it ends with us whatever happens. */
function startHelper(name: string, args: readonly string[] = []): Helper {
  const file = fileURLToPath(new URL(name, import.meta.url));
  const child = fork(file, args, { execArgv: ['--import', 'tsx', ...profiling()], stdio: 'inherit' });
  return {
    async next<Message>() {
      const ended = new AbortController();
      const exit = once(child, 'exit', ended).then(([code, signal]) => {
        throw new Error(`bench/support/${name} has ended with ${signal ?? `code ${code}`}`);
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

/** The source service, in a process of its own. */
export interface Source {
  /** Records of one trading day of GetBhavCopyCM. */
  readonly recordsPerDay: number;
  /** Base URL under which the responses of GetBhavCopyCM are of this mode. */
  url(mode: SourceMode): string;
  stop(): Promise<void>;
}

export async function startSource(recordsPerDay: number): Promise<Source> {
  const helper = startHelper('source.ts', [String(recordsPerDay)]);
  const { port } = await helper.next<{ port: number }>();
  return {
    recordsPerDay,
    url: (mode) => `http://127.0.0.1:${port}/${mode}`,
    stop: () => helper.stop(),
  };
}

/** What a process took from its start signal to its end. */
export interface ChildFigures<Result> {
  readonly result: Result;
  /** From the signal to the end of its task. */
  readonly seconds: number;
  readonly peakRssMb: number;
  readonly cpuSeconds: number;
}

/** A part of the pipeline in a process of its own, opened and ready, so that its memory and its time are its own. */
export interface Child {
  /** Lets it begin; a worker has begun already, and stops. @returns what it reports before it ends. */
  finish<Result>(): Promise<ChildFigures<Result>>;
  /** Ends it, if it has not ended on its own. */
  stop(): Promise<void>;
}

/** Starts a process for a task of child.ts, with these settings. */
export async function startChild(
  task: ChildTask,
  settings: Readonly<Record<string, string>>,
  input: unknown = null,
): Promise<Child> {
  const helper = startHelper('child.ts');
  helper.send({ task, settings, input });
  await helper.next();
  return {
    async finish<Result>() {
      helper.send({ go: true });
      const figures = await helper.next<ChildFigures<Result>>();
      await helper.stop();
      return figures;
    },
    stop: () => helper.stop(),
  };
}
