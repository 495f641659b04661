declare const isPosition: unique symbol;

/**
 * Where a response stands in the one order of responses: the later of two responses is the one with the greater
 * position. ISO 8601 in UTC with microseconds, such as `2026-11-23T18:30:00.000001Z`, so that positions compare as text
 * as they do as times. It is never a `Date`, which would lose the microseconds.
 */
export type Position = string & { readonly [isPosition]: true };

/** The position that begins at a moment: of responses that were stored before there were positions. */
export const positionAt = (moment: Date): Position => moment.toISOString().replace('Z', '000Z') as Position;

/** The position of a load that no single response made: before all others. */
export const BEFORE_ALL = positionAt(new Date(0));
