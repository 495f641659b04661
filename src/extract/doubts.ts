/** Why a response may not have all records that were requested: each day that it is about counts as failed. */
export interface Doubt {
  readonly message: string;
  /** Whether its records are among the rejects. Then it is settled once they are. */
  readonly isShownByRejects: boolean;
}

/** How the doubt begins about a response that states more records than it has; SQL makes the reason of a gap of it. */
export const COUNT_MISMATCH = 'count_mismatch';

/** @param miscount both numbers. */
export const countDoubt = (miscount: string): Doubt => ({
  message: `${COUNT_MISMATCH}: ${miscount}; if this count means something else, set EOD_COUNT=ignore`,
  isShownByRejects: false,
});

/** @param otherDay the day of which all records are, if that is one day. */
export function strayDoubt(strays: number, otherDay: string | null): Doubt {
  const records = strays === 1 ? 'a record is' : `${strays} records are`;
  const remedy =
    otherDay === null
      ? ''
      : `; all are of ${otherDay}: if the address serves no other day, set EOD_TRIAL_DAY=${otherDay}`;
  return {
    message: `${records} of a day, quarter or exchange that was not requested${remedy}`,
    isShownByRejects: true,
  };
}

export const joinedRowsDoubt = (lines: number, remedy: string): Doubt => ({
  message: `${lines === 1 ? 'a line has' : `${lines} lines have`} the cells of several rows, and it cannot be seen where one ends: ${remedy}`,
  isShownByRejects: true,
});
