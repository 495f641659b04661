/** What a check has shown. */
export interface Check {
  readonly name: string;
  /** `skipped`: could not be checked, or does not apply; `found` says why. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  /** The facts in a sentence without secrets. */
  readonly found: string;
  /** What to do about it; null if nothing needs to be done. */
  readonly remedy: string | null;
}

/** The outcome of a check, with a name if it is not that of the check. */
export type Outcome = Omit<Check, 'name'> & Partial<Pick<Check, 'name'>>;

/** Nothing is wrong. */
export const ok = (fact: string): Outcome => ({ state: 'ok', found: fact, remedy: null });

/** The check was not made. */
export const skipped = (fact: string): Outcome => ({ state: 'skipped', found: fact, remedy: null });

/** Something works now, but may stop working. */
export const warning = (fact: string, remedy: string): Outcome => ({ state: 'warning', found: fact, remedy });

/** There is a reason why the pipeline cannot work. */
export const failed = (fact: string, remedy: string): Outcome => ({ state: 'failed', found: fact, remedy });
