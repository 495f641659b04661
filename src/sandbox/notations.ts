import type { Clock } from '../core/clock.ts';
import { usageError } from '../core/errors.ts';
import { parseChoice, parseInteger } from '../core/input.ts';
import { operationNamed } from '../operations/registry.ts';
import { FAULT_KINDS, type Fault } from './faults.ts';

// The notations of values of `eod sandbox`.

/** A clock that starts at this time. */
export function clockFrom(value: string): Clock {
  const start = Date.parse(value);
  if (Number.isNaN(start))
    throw usageError(`--now: "${value}" is not a time such as 2025-09-05T22:00:00+05:30`);
  const offset = start - Date.now();
  return { now: () => Date.now() + offset };
}

const COUNT = { least: 1 };

/**
 * The notation of `--fault`, e.g. `status=503,every=7` or
 * `diagnostic=Key Expired.,first=1,operation=GetSeriesChange`.
 *
 * @throws PipelineError `usage`.
 */
export function parseFault(text: string): Fault {
  const [head = '', ...rules] = text.split(',');
  const [name = '', ...values] = head.split('=');
  const kind = parseChoice('--fault', name, FAULT_KINDS, 'kind');
  const value = values.length === 0 ? undefined : values.join('=');
  let fault: Fault = value === undefined ? { kind } : { kind, value };
  for (const rule of rules) {
    const [key = '', setting = ''] = rule.split('=');
    fault = { ...fault, ...parseFaultRule(key, setting) };
  }
  const isNumber = kind === 'status' || kind === 'slow' || kind === 'retry-after';
  if (isNumber && value !== undefined) parseInteger(`--fault: ${kind}`, value, COUNT);
  if (kind === 'diagnostic' && value === undefined) throw usageError('--fault: diagnostic needs a text');
  return fault;
}

const FAULT_RULES = ['every', 'first', 'min-days', 'operation'] as const;

function parseFaultRule(key: string, setting: string): Partial<Fault> {
  const number = () => parseInteger(`--fault: ${key}`, setting, COUNT);
  switch (parseChoice('--fault', key, FAULT_RULES, 'rule')) {
    case 'every':
      return { every: number() };
    case 'first':
      return { first: number() };
    case 'min-days':
      return { minDays: number() };
    case 'operation':
      return { operation: operationNamed(setting).name };
  }
}
