/** A list of at least one. */
export type NonEmpty<Item> = [Item, ...Item[]];

/** Groups items by a key, in the order in which keys and items occur: `Map.groupBy` of Node 21, for older ones. */
export function groupBy<Item, Key>(
  items: Iterable<Item>,
  keyOf: (item: Item) => Key,
): Map<Key, NonEmpty<Item>> {
  const groups = new Map<Key, NonEmpty<Item>>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** The first of these. @throws Error if there is none. */
export function firstItem<Item>(items: Iterable<Item>): Item {
  for (const item of items) return item;
  throw new Error('there is no first of an empty list');
}

/** The last of a list. */
export const lastItem = <Item>(items: Readonly<NonEmpty<Item>>): Item => items.at(-1) ?? items[0];

/**
 * The largest of these numbers, at least `least`. For any number of them: a call with as many arguments as there are rows
 * overflows the stack.
 */
export function largest(numbers: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let most = least;
  for (const number of numbers) if (number > most) most = number;
  return most;
}
