import { systemClock } from '../../core/clock.ts';
import { type Gap, gapRequest, readGaps } from '../../jobs/runs/read-gaps.ts';
import { type Cli, loadSettings, logNote, print, printJson } from '../cli.ts';
import { plural } from '../output.ts';
import { gapScope, parsedLate } from '../parse-request.ts';
import { logUnknownYears } from '../run-output.ts';
import { runRequest } from '../work-on-run.ts';
import { type FillFlags, noTradingDayText } from './gaps.ts';

export async function fillGaps(cli: Cli, names: readonly string[], flags: FillFlags): Promise<void> {
  const config = await loadSettings(cli);
  const scope = parsedLate(names, config, () => gapScope(names, flags, { config, clock: systemClock }));
  await runRequest(cli, flags, {
    config,
    async request(context) {
      const found = await readGaps(context, scope());
      // Files may reach back for years that the source does not have. With --from these are requested too.
      const isFar = ({ reason }: Gap) => flags.from === undefined && reason === 'beyond_history';
      const far = found.gaps.filter(isFar).reduce((sum, { sessions }) => sum + sessions, 0);
      if (far > 0) logNote(cli, farText(far));
      const gaps = found.gaps.filter((gap) => !isFar(gap));
      if (gaps.length > 0) return gapRequest(gaps);
      logUnknownYears(cli, found.unknownYears);
      if (flags.json === true) printJson(cli, null);
      else if (!found.hasTradingDay) print(cli, noTradingDayText(found));
      else print(cli, far === 0 ? 'nothing is missing' : 'nothing is missing that the source still has');
      return null;
    },
  });
}

const farText = (sessions: number) =>
  `${plural(sessions, 'missing session')} too old for the source (EOD_HISTORY_DAYS): only "eod import" can load them; with --from they are requested nevertheless`;
