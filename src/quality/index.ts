import type { Config } from '../core/config.ts';
import { parseChoice } from '../core/input.ts';
import type { Severity } from '../state/findings.ts';
import { missingBesideChecks, rowCountChecks } from './count-checks.ts';
import { eventChecks } from './event-checks.ts';
import { priceChecks } from './price-checks.ts';
import type { Check } from './quality-check.ts';
import { ratioBounds } from './ratio-bounds.ts';
import { symbolChecks } from './symbol-checks.ts';

/** All checks. */
export const checks: readonly Check[] = [
  ...priceChecks,
  ...rowCountChecks,
  ...missingBesideChecks(),
  ratioBounds,
  ...eventChecks,
  ...symbolChecks,
];

/** The name of a check as it was typed. @throws PipelineError `usage` with the nearest known one. */
export function parseCheckName(flag: string, text: string): string {
  return parseChoice(
    flag,
    text,
    checks.map(({ name }) => name),
    'check',
  );
}

/**
 * The severity of each check's findings; `off` if the check is switched off.
 *
 * @throws PipelineError `usage` if EOD_FINDING_SEVERITY names a check that does not exist.
 */
export function severities(config: Pick<Config, 'EOD_FINDING_SEVERITY'>): Map<Check, Severity | 'off'> {
  const wanted = new Map(
    Object.entries(config.EOD_FINDING_SEVERITY).map(([name, severity]) => [
      parseCheckName('EOD_FINDING_SEVERITY', name),
      severity,
    ]),
  );
  return new Map(checks.map((check) => [check, wanted.get(check.name) ?? check.severity]));
}
