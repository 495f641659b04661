import type { Config } from '../../../core/config.ts';
import { usageError } from '../../../core/errors.ts';
import { nearest } from '../../../core/nearest.ts';
import type { Severity } from '../../../load/state/findings.ts';
import type { Check } from './check.ts';
import { circuitChecks } from './circuits.ts';
import { companyChecks } from './companies.ts';
import { highlightChecks } from './highlights.ts';
import { moverChecks } from './movers.ts';
import { priceChecks } from './prices.ts';
import { rowCountChecks } from './row-count.ts';

/** Every check there is. */
export const checks: readonly Check[] = [
  ...priceChecks,
  ...rowCountChecks,
  ...moverChecks,
  ...highlightChecks,
  ...circuitChecks,
  ...companyChecks,
];

/** The check of this name. @throws PipelineError `usage` with the nearest known one. */
export function checkNamed(name: string): Check {
  const found = checks.find((check) => check.name === name.toLowerCase());
  if (found !== undefined) return found;
  const names = checks.map((check) => check.name);
  const guess = nearest(name, names);
  throw usageError(
    `unknown check "${name}"${guess === null ? '' : `; did you mean ${guess}?`} (known: ${names.join(', ')})`,
  );
}

/**
 * How severe each check's findings are; `off` where it is not made at all.
 *
 * @throws PipelineError `usage` when EOD_FINDING_SEVERITY names a check that does not exist.
 */
export function severities(config: Pick<Config, 'EOD_FINDING_SEVERITY'>): Map<Check, Severity | 'off'> {
  const wanted = new Map(checks.map((check): [Check, Severity | 'off'] => [check, check.severity]));
  for (const [name, severity] of Object.entries(config.EOD_FINDING_SEVERITY)) {
    wanted.set(checkNamed(name), severity);
  }
  return wanted;
}
