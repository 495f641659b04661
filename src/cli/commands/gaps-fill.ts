import { exampleDays, systemClock } from '../../core/clock.ts';
import type { Gap } from '../../jobs/runs/read-gaps.ts';
import { findOperations } from '../../operations/registry.ts';
import { loadSettings, logNote, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { detachOption, dryRunOption, several } from '../options.ts';
import { plural } from '../output.ts';
import { parseScope } from '../parse-request.ts';
import { logUnknownYears } from '../shared-texts.ts';
import { noTradingDayText, ONLY_THESE, scopeOptions } from './gaps.ts';

export default defineCommand({
  path: 'gaps fill',
  summary: 'Request exactly the trading days that "eod gaps" lists.',
  args: { operations: several(ONLY_THESE) },
  options: { ...scopeOptions, dryRun: dryRunOption, detach: detachOption },
  examples: [
    'eod gaps fill',
    'eod gaps fill --dry-run',
    `eod gaps fill GetBhavCopyCM --from ${exampleDays().from} --json`,
  ],
  async run(cli, values) {
    const { gapRequest, readGaps } = await import('../../jobs/runs/read-gaps.ts');
    const { readRequestedNames } = await import('../../state/coverage/completeness.ts');
    const { runRequest } = await import('../work-on-run.ts');
    const config = await loadSettings(cli);
    const scope = parseScope(values, findOperations, { config, clock: systemClock });
    await runRequest(cli, values, config, async (context) => {
      const { gaps: all, ...report } = await readGaps(context, scope);
      // An operation that is not requested every night is requested if it is named here.
      const requested = await readRequestedNames(context.db.drizzle);
      const requestable = all.filter(
        ({ operation }) => values.operations.length > 0 || requested.has(operation),
      );
      if (requestable.length < all.length)
        logNote(
          cli,
          'what files alone fill is not requested: "eod gaps" lists the days, "eod import" loads their files',
        );
      // Files may reach back for years that the source does not have. With --from these are requested too.
      const isFar = ({ reason }: Gap) => values.from === undefined && reason === 'beyond_history';
      const far = requestable.filter(isFar).reduce((sum, { sessions }) => sum + sessions, 0);
      if (far > 0) logNote(cli, farText(far));
      const gaps = requestable.filter((gap) => !isFar(gap));
      if (gaps.length > 0) return gapRequest(gaps);
      logUnknownYears(cli, report.unknownYears);
      if (values.json) printJson(cli, null);
      else if (!report.hasTradingDay) print(cli, noTradingDayText(report));
      else print(cli, far === 0 ? 'nothing is missing' : 'nothing is missing that the source still has');
      return null;
    });
  },
});

const farText = (tradingDays: number) =>
  `${plural(tradingDays, 'missing trading day')} too old for the source (EOD_HISTORY_DAYS): only "eod import" can load them; with --from they are requested nevertheless`;
