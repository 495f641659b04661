import { type Position, positionAt } from '../../src/core/position.ts';

/** The position of a response that was requested at a moment (epoch milliseconds), so many microseconds later. */
export const positionOf = (calledAt: number, microseconds = 0): Position =>
  positionAt(new Date(calledAt)).replace('000Z', `${String(microseconds).padStart(3, '0')}Z`) as Position;
