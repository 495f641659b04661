import type { Progress } from '../state/runs/reports.ts';
import { type Cli, logNote } from './cli.ts';
import { count, duration, pageWidth } from './output.ts';

const PLAIN_LINE_EVERY_MS = 10_000;

/** Shows how far a run is, on stderr. */
interface ProgressView {
  /**
   * @param pause why the run makes no calls now, and until when; null if it makes some.
   * @param retries what failed so far and is tried again; null if nothing is.
   */
  update(progress: Progress, pause?: string | null, retries?: string | null): void;
  end(): void;
}

/**
 * One line on a terminal, rewritten in place; elsewhere a line of text every 10 s, unless it would say the same as the
 * last one.
 */
export function progressView(cli: Cli, runId: number, noun = 'windows'): ProgressView {
  if (cli.verbosity === 'nothing') return { update: () => undefined, end: () => undefined };
  const isTerminal = cli.stdout.isTTY === true && cli.stderr.isTTY === true;
  return isTerminal ? barView(cli, runId, noun) : lineView(cli, runId, noun);
}

const BAR_SIZE = 28;

/** Returns to the start of the line and erases it. */
const REWRITE = '\r\u001b[K';

function barView({ stderr }: Cli, runId: number, noun: string): ProgressView {
  const pace = paceMeter();
  const clock = derivingClock(DERIVING_ON_BAR_MS);
  const view: ProgressView = {
    update(progress, pause = null, retries = null) {
      clock.update(progress, () => view.update(progress, pause, retries));
      const { ended, total, isDeferred } = progress;
      // While a part is yet to be planned, the bar is empty, because it would go back when that part is added.
      const filled = isDeferred || total === 0 ? 0 : Math.floor((BAR_SIZE * ended) / total);
      const bar = '█'.repeat(filled).padEnd(BAR_SIZE, '░');
      const facts = [doneText(progress, noun), pace(progress, pause, retries !== null), retries];
      const line = `run ${runId} ${bar} ${facts.filter((text) => text !== null).join(' · ')}`;
      // A line that is wrapped could not be rewritten.
      stderr.write(`${REWRITE}${line.slice(0, (process.stderr.columns ?? pageWidth()) - 1)}`);
    },
    end() {
      clock.end();
      stderr.write('\n');
    },
  };
  return view;
}

/** True while all windows have ended and what is derived from their rows is brought up to date. */
const isDeriving = ({ state, total, ended, isDeferred }: Progress): boolean =>
  state === 'running' && total > 0 && ended === total && !isDeferred;

const DERIVING_ON_BAR_MS = 1_000;

/** Repeats the last update while a run derives, because nothing else is reported then. */
function derivingClock(everyMs: number) {
  let timer: NodeJS.Timeout | undefined;
  return {
    update(progress: Progress, repeat: () => void) {
      clearInterval(timer);
      if (isDeriving(progress)) timer = setInterval(repeat, everyMs).unref();
    },
    end: () => clearInterval(timer),
  };
}

/** `140/207 windows`, or how many there are at least. */
function doneText({ ended, total, isDeferred, state }: Progress, noun: string): string {
  // While a run is planned it has no windows yet.
  if (total === 0 && !isDeferred && state !== 'running') return 'nothing to request';
  return isDeferred
    ? `${count(ended)} of ${count(total)}+ ${noun} done`
    : `${count(ended)}/${count(total)} ${noun}`;
}

function lineView(cli: Cli, runId: number, noun: string): ProgressView {
  const pace = paceMeter();
  let line = '';
  let printed = '';
  let paused: string | null = null;
  const printLine = () => {
    if (line !== printed) logNote(cli, line);
    printed = line;
  };
  let repeat: (() => void) | null = null;
  const timer = setInterval(() => {
    // Nothing else is reported while a run derives, and how long it has is news.
    repeat?.();
    printLine();
  }, PLAIN_LINE_EVERY_MS).unref();
  const view: ProgressView = {
    update(progress, pause = null, retries = null) {
      repeat = isDeriving(progress) ? () => view.update(progress, pause, retries) : null;
      const facts = [doneText(progress, noun), pace(progress, pause, retries !== null), retries];
      line = `run ${runId}: ${facts.filter((text) => text !== null).join(' · ')}`;
      // A pause can last most of an hour, so it is shown at once.
      if (pause === paused) return;
      paused = pause;
      printLine();
    },
    end() {
      clearInterval(timer);
      printLine();
    },
  };
  return view;
}

/**
 * Returns a function that says how many records came, how fast, and how long the rest will take, where that is known:
 * once a window has ended, all of them are planned, and none waits to be tried again. The speed is measured from the
 * first call, or the last pause, because windows skipped or done before took no time. Once all have ended, it says what
 * else is done before the run ends, and then how long it took.
 */
function paceMeter(): (progress: Progress, pause: string | null, isRetrying: boolean) => string {
  const began = Date.now();
  let first: { at: number; progress: Progress } | undefined;
  let derivingSince: number | undefined;
  return (progress, pause, isRetrying) => {
    // Speed and time left make no sense while nothing may be requested, and are measured anew after that.
    if (pause !== null && progress.ended < progress.total) {
      first = undefined;
      return `${count(progress.fetched)} records · ${pause}`;
    }
    if (isDeriving(progress)) {
      derivingSince ??= Date.now();
      const taken = duration((Date.now() - derivingSince) / 1000);
      return `${count(progress.fetched)} records · naming instruments, computing corporate events: ${taken}`;
    }
    derivingSince = undefined;
    if (progress.state !== 'running' && progress.ended === progress.total && !progress.isDeferred) {
      return `${count(progress.fetched)} records · took ${duration((Date.now() - began) / 1000)}`;
    }
    first ??= { at: Date.now(), progress };
    const seconds = Math.max(0.001, (Date.now() - first.at) / 1000);
    const ended = progress.ended - first.progress.ended;
    const records = (progress.fetched - first.progress.fetched) / seconds;
    if (ended === 0) return `${count(progress.fetched)} records`;
    const left = ((progress.total - progress.ended) * seconds) / ended;
    const time = progress.isDeferred
      ? 'more will be planned once these are loaded'
      : `${duration(left)} left`;
    const facts = [
      `${count(progress.fetched)} records`,
      ...(records < 0.5 ? [] : [`${count(Math.round(records))}/s`]),
      ...(isRetrying ? [] : [time]),
    ];
    return facts.join(' · ');
  };
}
