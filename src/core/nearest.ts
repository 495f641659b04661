import { closest, distance } from 'fastest-levenshtein';

/** The known word that is most like a mistyped one, or null when none is like it. */
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
  // Two changes can replace every letter of a short word, which then has nothing in common with it.
  const alike = changes < Math.max(lower.length, found.length);
  const near = alike && changes <= Math.max(2, Math.ceil(found.length / 2));
  return near || (lower.length > 2 && guess.includes(lower)) ? found : null;
}
