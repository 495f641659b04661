/**
 * The largest of these numbers, at least `least`. For any number of them: a call with as many arguments as there are rows
 * overflows the stack.
 */
export function largest(numbers: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let most = least;
  for (const number of numbers) if (number > most) most = number;
  return most;
}
