import type { Config } from '../../core/config.ts';
import type { MadeCall, SentRecord } from './make-calls.ts';

/** A value for a setting that fits what was seen. */
export interface SettingChange {
  readonly name: 'EOD_TRIAL_DAY' | 'EOD_COUNT' | 'EOD_FORMAT' | 'EOD_DATE_FORMAT' | 'EOD_DATE_DIALECT';
  readonly value: string;
}

/** `settled`: the reading that is assumed holds. `contradicts`: the other one does. `undecided`: neither was seen. */
export interface Verdict {
  readonly state: 'settled' | 'contradicts' | 'undecided';
  readonly evidence: string;
  readonly setting?: SettingChange;
}

/** What was received, by the name of the call. */
export interface Responses {
  readonly config: Config;
  readonly all: readonly MadeCall[];
  /** The one day that a trial address serves; null if it serves others. */
  readonly trialDay: string | null;
  of(name: string): MadeCall | undefined;
  /** The records of a call; empty if it was not made or has none. */
  records(name: string): readonly SentRecord[];
}

export const settled = (evidence: string): Verdict => ({ state: 'settled', evidence });
export const undecided = (evidence: string): Verdict => ({ state: 'undecided', evidence });
export const contradicts = (evidence: string, setting?: SettingChange): Verdict => ({
  state: 'contradicts',
  evidence,
  ...(setting === undefined ? {} : { setting }),
});

/** Why a call shows nothing. */
export function silence(responses: Responses, name: string): string {
  const made = responses.of(name);
  if (made === undefined) return `no call was made for ${name}`;
  if (made.problem !== null) return `${made.call.operation.name} was not served (${made.problem.kind})`;
  return `the response for ${name} has no records`;
}

/** Verdict on the records of one call. */
export function ofRecords(
  responses: Responses,
  name: string,
  judge: (records: readonly SentRecord[], made: MadeCall) => Verdict,
): Verdict {
  const made = responses.of(name);
  const records = responses.records(name);
  return made === undefined || records.length === 0
    ? undecided(silence(responses, name))
    : judge(records, made);
}
