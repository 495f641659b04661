import type { WorkContext } from '../jobs/context.ts';
import type { Cli } from './command.ts';
import { print, printJson, say } from './output.ts';
import { exitCodeOf, failuresText, runText } from './run-view.ts';
import { sayHowToResume, workOn } from './work.ts';

/** What `backfill`, `nightly` and `resume` have in common: work, print, and an honest exit code. */
export async function workUntilEnd(
  cli: Cli,
  context: WorkContext,
  runId: number,
  flags: { readonly json?: boolean },
): Promise<void> {
  const { report, interrupted } = await workOn(cli.life, context, runId);
  if (flags.json === true) printJson(report);
  else print(runText(report));
  const failures = failuresText(report);
  if (failures !== null) say(failures);
  if (interrupted) sayHowToResume(report);
  cli.exitCode = (interrupted ? cli.life.cutShort() : null) ?? exitCodeOf(report);
}
