import { systemClock } from '../../core/clock.ts';
import { type Cli, type JsonFlag, loadSettings } from '../cli.ts';
import { type BackfillFlags, backfillRequest } from '../parse-request.ts';
import { runRequest } from '../work-on-run.ts';

interface Flags extends BackfillFlags, JsonFlag {
  readonly dryRun?: boolean;
  readonly detach?: boolean;
}

export async function backfill(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const request = backfillRequest(names, flags, { config, clock: systemClock, cwd: cli.cwd });
  await runRequest(cli, flags, config, async () => request);
}
