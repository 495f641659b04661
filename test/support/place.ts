import { type Place, placeAt } from '../../src/core/place.ts';

/** The place of an answer that was asked for at a moment (epoch milliseconds), so many microseconds later. */
export const placeOf = (calledAt: number, microseconds = 0): Place =>
  placeAt(new Date(calledAt)).replace('000Z', `${String(microseconds).padStart(3, '0')}Z`) as Place;
