import { type Cli, EXIT, logStderr } from './cli.ts';

/** The flag of commands that ask before they delete something. */
export interface YesFlag {
  readonly yes?: boolean;
}

/**
 * Asks on a terminal whether to go on. Without a terminal nobody can confirm, and the command goes on.
 *
 * @param what is about to be done, as a sentence.
 * @returns false if the reply is no, which is then printed.
 */
export async function confirm(cli: Cli, what: string, { yes }: YesFlag): Promise<boolean> {
  if (yes === true || cli.ask === undefined) return true;
  const reply = await cli.ask(`${what}\nGo on? [y/N] `);
  cli.life.signal.throwIfAborted();
  if (/^y(es)?$/i.test(reply.trim())) return true;
  logStderr(cli, 'eod: nothing was changed');
  cli.exitCode = EXIT.failed;
  return false;
}
