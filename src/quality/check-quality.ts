import type { Calendar } from '../calendar/calendar.ts';
import type { Config } from '../core/config.ts';
import { addDays, type DayRange } from '../core/days.ts';
import type { Database } from '../postgres/database.ts';
import { transaction } from '../postgres/transaction.ts';
import { type FindingCounts, markChecked, runCheck, type Severity } from '../state/findings.ts';
import { readServerMoment } from '../state/loads/state-numbers.ts';
import { severities } from './index.ts';
import { PRECEDING_DAYS } from './quality-check.ts';

/** What one check found in the range. */
export interface CheckResult extends FindingCounts {
  readonly check: string;
  readonly severity: Severity;
}

/** What the checks need of the context of a run. */
interface CheckContext {
  readonly config: Pick<Config, 'EOD_EXCHANGES' | 'EOD_FINDING_SEVERITY'>;
  readonly db: Database;
  readonly calendar: Pick<Calendar, 'tradingDays'>;
}

interface QualityRange extends DayRange {
  /** The run that caused the check, if there is one. */
  readonly runId?: number;
}

/**
 * Compares the stored data sets with each other over a range of days, and stores what is wrong in the table of
 * findings, and which days were compared. Does not change the schema `market`.
 *
 * @returns the result of each check that is not switched off, in the order of `checks`.
 * @throws PipelineError `database_unreachable`; `usage` for an unknown check in EOD_FINDING_SEVERITY.
 */
export async function checkQuality(context: CheckContext, range: QualityRange): Promise<CheckResult[]> {
  const { from, to, runId = null } = range;
  const first = addDays(from, -PRECEDING_DAYS);
  const tradingDays = context.config.EOD_EXCHANGES.flatMap((exchange) =>
    context.calendar.tradingDays(exchange, first, to).map((day) => ({ exchange, day })),
  );
  const results: CheckResult[] = [];
  const began = await readServerMoment(context.db.drizzle);
  for (const [check, severity] of severities(context.config)) {
    const counts = await transaction(context.db, (tx) =>
      runCheck(tx, check, { from, to, tradingDays }, { severity, runId }),
    );
    if (severity !== 'off') results.push({ check: check.name, severity, ...counts });
  }
  await transaction(context.db, (tx) => markChecked(tx, range, began));
  return results;
}
