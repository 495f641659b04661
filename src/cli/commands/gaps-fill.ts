import { exampleDays, systemClock } from '../../core/clock.ts';
import type { Gap } from '../../jobs/runs/read-gaps.ts';
import { findOperations } from '../../operations/registry.ts';
import { logNote, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
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
      const { gaps: listed, ...report } = await readGaps(context, scope);
      // An operation that no schedule requests is requested only if it is named here.
      const scheduled = await readRequestedNames(context.db.drizzle);
      const requestable = listed.filter(
        ({ operation }) => values.operations.length > 0 || scheduled.has(operation),
      );
      const hasLeftOut = requestable.length < listed.length;
      if (hasLeftOut)
        logNote(
          cli,
          'what no schedule requests is left out: name an operation to request it ("eod gaps" lists the days), or load its files with "eod import"',
        );
      // Imported files may reach further back than the source does. With --from these days are requested too.
      const isTooOld = ({ reason }: Gap) => values.from === undefined && reason === 'beyond_history';
      const tooOldDays = requestable.filter(isTooOld).reduce((sum, { sessions }) => sum + sessions, 0);
      if (tooOldDays > 0) logNote(cli, tooOldText(tooOldDays));
      const gaps = requestable.filter((gap) => !isTooOld(gap));
      if (gaps.length > 0) return gapRequest(gaps);
      logUnknownYears(cli, report.unknownYears);
      if (values.json) printJson(cli, null);
      else if (!report.hasTradingDay) print(cli, noTradingDayText(report));
      else {
        const nothing = hasLeftOut ? 'nothing else is missing' : 'nothing is missing';
        print(cli, tooOldDays === 0 ? nothing : `${nothing} that the source still has`);
      }
      return null;
    });
  },
});

const tooOldText = (tradingDays: number) =>
  `${plural(tradingDays, 'missing trading day')} too old for the source (EOD_HISTORY_DAYS): only "eod import" can load them; with --from they are requested nevertheless`;
