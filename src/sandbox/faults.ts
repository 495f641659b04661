import { usageError } from '../core/errors.ts';
import { parseChoice, parseInteger } from '../core/input.ts';
import { operationNamed } from '../operations/registry.ts';

/** Ways in which a response can go wrong. */
const FAULT_KINDS = [
  /** An HTTP status (`value`, default 503) with a short text. */
  'status',
  /** The connection is reset before any response. */
  'reset',
  /** No response at all until the client gives up. */
  'hang',
  /** The body trickles over `value` milliseconds (default 2000). */
  'slow',
  /** The connection breaks off in the middle of the body. */
  'truncate',
  /** An HTML error page with status 200. */
  'html',
  /** Status 200 and nothing. */
  'empty-body',
  /** Status 200 and the first half of the JSON. */
  'half-json',
  /** A diagnostic line (`value`) with status 200. */
  'diagnostic',
  /** Status 429 with `Retry-After: value` seconds (default 1). */
  'retry-after',
] as const;
type FaultKind = (typeof FAULT_KINDS)[number];

/** A rule that makes requests fail. Without `every` or `first`, every matching request fails. */
export interface Fault {
  readonly kind: FaultKind;
  readonly value?: string;
  /** Only requests of this operation. */
  readonly operation?: string;
  /** Only requests with these values of parameters. */
  readonly params?: Readonly<Record<string, string>>;
  /** Every n-th matching request. */
  readonly every?: number;
  /** The first n matching requests. */
  readonly first?: number;
  /** Only requests for a range of at least this many days. */
  readonly minDays?: number;
}

const COUNT = { least: 1 };

/**
 * Reads a fault as people write it, e.g. `status=503,every=7` or
 * `diagnostic=Key Expired.,first=1,operation=GetSeriesChange`.
 *
 * @param name of what was written, for messages.
 * @throws PipelineError `usage`
 */
export function parseFault(text: string, name = 'fault'): Fault {
  const [head = '', ...rules] = text.split(',');
  const [word = '', ...values] = head.split('=');
  const kind = parseChoice(name, word, FAULT_KINDS, 'kind');
  const value = values.length === 0 ? undefined : values.join('=');
  let fault: Fault = value === undefined ? { kind } : { kind, value };
  for (const rule of rules) {
    const [key = '', setting = ''] = rule.split('=');
    fault = { ...fault, ...parseFaultRule(key, setting, name) };
  }
  const isNumber = kind === 'status' || kind === 'slow' || kind === 'retry-after';
  if (isNumber && value !== undefined) parseInteger(`${name}: ${kind}`, value, COUNT);
  if (kind === 'diagnostic' && value === undefined) throw usageError(`${name}: diagnostic needs a text`);
  return fault;
}

const FAULT_RULES = ['every', 'first', 'min-days', 'operation'] as const;

function parseFaultRule(key: string, setting: string, name: string): Partial<Fault> {
  const number = () => parseInteger(`${name}: ${key}`, setting, COUNT);
  switch (parseChoice(name, key, FAULT_RULES, 'rule')) {
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

/**
 * Decides which requests fail. This depends only on the number of requests, so that a run can be repeated.
 *
 * @returns a function that chooses the fault for the next request of an operation: that of the first rule that applies.
 *   Its `days` are those of the requested range; null before the parameters are read. With null only rules without
 *   `minDays` are considered, otherwise only the others.
 */
export function planFaults(faults: readonly Fault[]) {
  /** How many requests each rule has matched. */
  const matched: number[] = [];
  return (operation: string, search: URLSearchParams, days: number | null): Fault | null => {
    let chosen: Fault | null = null;
    for (const [at, fault] of faults.entries()) {
      if ((fault.minDays === undefined) !== (days === null)) continue;
      if (fault.minDays !== undefined && days !== null && days < fault.minDays) continue;
      if (fault.operation !== undefined && fault.operation !== operation) continue;
      if (Object.entries(fault.params ?? {}).some(([name, value]) => search.get(name) !== value)) continue;
      const count = (matched[at] ?? 0) + 1;
      matched[at] = count;
      const hits =
        (fault.every === undefined || count % fault.every === 0) &&
        (fault.first === undefined || count <= fault.first);
      if (hits) chosen ??= fault;
    }
    return chosen;
  };
}
