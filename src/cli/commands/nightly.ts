import { clockOf } from '../../core/clock.ts';
import { lastNight } from '../../declaration/night-times.ts';
import { nightlyRequest } from '../../jobs/runs/nightly-request.ts';
import { type Cli, type JsonFlag, loadSettings } from '../cli.ts';
import { parseDay } from '../options.ts';
import { runRequest } from '../work-on-run.ts';

interface Flags extends JsonFlag {
  readonly dryRun?: boolean;
  readonly date?: string;
}

export async function nightly(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const clock = clockOf(config);
  const date =
    flags.date === undefined ? lastNight(config, clock) : parseDay('--date', flags.date, { config, clock });
  await runRequest(cli, flags, config, (context) => nightlyRequest(context, { date }));
}
