import { type Day, weekday } from '../core/days.ts';

const WEEK = 7;

/** Of instruments that are spread over the week, those of a day: a symbol always has the same weekday. */
export function instrumentsOfDay(instruments: readonly string[], day: Day): readonly string[] {
  return instruments.filter((symbol) => hashOf(symbol) % WEEK === weekday(day));
}

/** FNV-1a, which spreads short texts evenly. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}
