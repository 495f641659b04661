/**
 * Seeded hashing instead of random numbers: the same arguments always give the same result, on every machine and in any
 * order. Only 32-bit integer arithmetic is used.
 */

/** 32-bit FNV-1a of a text. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mix(hash);
}

function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x21f0aaad);
  h = Math.imul(h ^ (h >>> 15), 0x735a2d97);
  return (h ^ (h >>> 15)) >>> 0;
}

/** An integer from 0 to 2³²−1 for a seed, a day number and a purpose. */
export function hash(seed: number, day: number, purpose: number): number {
  return mix(mix(seed ^ Math.imul(day + 1, 0x9e3779b1)) ^ Math.imul(purpose + 1, 0x85ebca6b));
}

/** The item of a list at a number, which may be greater than its length. */
export function pick<Item>(list: readonly Item[], number: number): Item {
  const item = list[number % list.length];
  if (item === undefined) throw new Error('nothing can be picked from an empty list');
  return item;
}

/** A number in [0, 1). */
export function chance(seed: number, day: number, purpose: number): number {
  return hash(seed, day, purpose) / 0x1_0000_0000;
}

/** An integer from `low` to `high`, both included. */
export function between(low: number, high: number, seed: number, day: number, purpose: number): number {
  return low + Math.floor(chance(seed, day, purpose) * (high - low + 1));
}
