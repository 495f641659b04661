import { closest, distance } from 'fastest-levenshtein';

/** The known word a mistyped one most likely means, or null when none is near. */
export function nearest(word: string, known: readonly string[]): string | null {
  if (known.length === 0) return null;
  const lower = word.toLowerCase();
  const guess = closest(
    lower,
    known.map((name) => name.toLowerCase()),
  );
  const found = known.find((name) => name.toLowerCase() === guess) ?? null;
  if (found === null) return null;
  const changes = distance(lower, guess);
  // Of short words every letter may differ within two changes: then they have nothing in common.
  const alike = changes < Math.max(lower.length, found.length);
  const near = alike && changes <= Math.max(2, Math.ceil(found.length / 2));
  return near || (lower.length > 2 && guess.includes(lower)) ? found : null;
}
