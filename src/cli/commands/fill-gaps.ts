import { systemClock } from '../../core/clock.ts';
import { type Gap, gapRequest, readGaps } from '../../jobs/runs/read-gaps.ts';
import { findOperations } from '../../operations/registry.ts';
import { readRequestedNames } from '../../state/coverage/completeness.ts';
import { type Cli, loadSettings, logNote, print, printJson } from '../cli.ts';
import { plural } from '../output.ts';
import { gapScope } from '../parse-request.ts';
import { logUnknownYears } from '../run-output.ts';
import { runRequest } from '../work-on-run.ts';
import { type FillFlags, noTradingDayText } from './gaps.ts';

export async function fillGaps(cli: Cli, names: readonly string[], flags: FillFlags): Promise<void> {
  const config = await loadSettings(cli);
  const context = { config, clock: systemClock };
  const scope = gapScope(names, flags, context, findOperations);
  await runRequest(cli, flags, config, async (context) => {
    const { gaps: all, ...report } = await readGaps(context, scope);
    // An operation that is not requested every night is requested if it is named here.
    const requested = await readRequestedNames(context.db.drizzle);
    const requestable = all.filter(({ operation }) => names.length > 0 || requested.has(operation));
    if (requestable.length < all.length)
      logNote(
        cli,
        'what files alone fill is not requested: "eod gaps" lists the days, "eod import" loads their files',
      );
    // Files may reach back for years that the source does not have. With --from these are requested too.
    const isFar = ({ reason }: Gap) => flags.from === undefined && reason === 'beyond_history';
    const far = requestable.filter(isFar).reduce((sum, { sessions }) => sum + sessions, 0);
    if (far > 0) logNote(cli, farText(far));
    const gaps = requestable.filter((gap) => !isFar(gap));
    if (gaps.length > 0) return gapRequest(gaps);
    logUnknownYears(cli, report.unknownYears);
    if (flags.json === true) printJson(cli, null);
    else if (!report.hasTradingDay) print(cli, noTradingDayText(report));
    else print(cli, far === 0 ? 'nothing is missing' : 'nothing is missing that the source still has');
    return null;
  });
}

const farText = (tradingDays: number) =>
  `${plural(tradingDays, 'missing trading day')} too old for the source (EOD_HISTORY_DAYS): only "eod import" can load them; with --from they are requested nevertheless`;
