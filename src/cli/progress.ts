import type { Progress } from '../state/runs/reports.ts';
import { type Cli, logNote } from './cli.ts';
import { count, duration, pageWidth } from './output.ts';

const LINE_EVERY_MS = 10_000;

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
  const { stdout, stderr, verbosity } = cli;
  const isRewritten = stdout.isTTY === true && stderr.isTTY === true && verbosity !== 'nothing';
  const pace = paceMeter();
  let line = '';
  let printed = '';
  let printedAt = Date.now();
  let paused: string | null = null;
  const printLine = () => {
    if (line !== printed) logNote(cli, line);
    [printed, printedAt] = [line, Date.now()];
  };
  return {
    update(progress, pause = null, retries = null) {
      const facts = [doneText(progress, noun), pace(progress, pause, retries !== null), retries];
      line = `run ${runId}: ${facts.filter((fact) => fact !== null).join(' · ')}`;
      if (isRewritten) {
        // A line that is wrapped could not be rewritten.
        stderr.write(`${REWRITE}${line.slice(0, (process.stderr.columns ?? pageWidth()) - 1)}`);
        return;
      }
      // A pause can last most of an hour, so it is shown at once.
      if (pause === paused && Date.now() - printedAt < LINE_EVERY_MS) return;
      paused = pause;
      printLine();
    },
    end() {
      if (isRewritten) stderr.write('\n');
      else printLine();
    },
  };
}

/** Returns to the start of the line and erases it. */
const REWRITE = '\r\u001b[K';

/** `140/207 windows`, or how many there are at least. */
function doneText({ ended, total, isDeferred, state }: Progress, noun: string): string {
  // While a run is planned it has no windows yet.
  if (total === 0 && !isDeferred && state !== 'running') return 'nothing to request';
  return isDeferred
    ? `${count(ended)} of ${count(total)}+ ${noun} done`
    : `${count(ended)}/${count(total)} ${noun}`;
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
  return (progress, pause, isRetrying) => {
    // Speed and time left make no sense while nothing may be requested, and are measured anew after that.
    if (pause !== null && progress.ended < progress.total) {
      first = undefined;
      return `${count(progress.fetched)} records · ${pause}`;
    }
    const hasEnded = progress.ended === progress.total && !progress.isDeferred;
    if (hasEnded && progress.state !== 'running')
      return `${count(progress.fetched)} records · took ${duration((Date.now() - began) / 1000)}`;
    if (hasEnded && progress.total > 0)
      return `${count(progress.fetched)} records · naming instruments, computing corporate events`;
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
