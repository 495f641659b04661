declare const isPlace: unique symbol;

/**
 * Where an answer stands in the one order of answers: the later of two answers is the one with the greater place. ISO 8601
 * in UTC with microseconds, such as `2026-11-23T18:30:00.000001Z`, so that places compare as text as they do as times. It
 * is never a `Date`, which would lose the microseconds.
 */
export type Place = string & { readonly [isPlace]: true };

/** The place that begins at a moment: that of an answer of a time when answers had none. */
export const placeAt = (moment: Date): Place => moment.toISOString().replace('Z', '000Z') as Place;

/** The place of a load of no answer in particular: it is later than none. */
export const BEFORE_ALL = placeAt(new Date(0));
