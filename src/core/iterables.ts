/** A list of at least one item. */
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

/** The first item. @throws Error if there is none. */
export function firstItem<Item>(items: Iterable<Item>): Item {
  for (const item of items) return item;
  throw new Error('an empty list has no first item');
}

/** The last item. */
export const lastItem = <Item>(items: Readonly<NonEmpty<Item>>): Item => items.at(-1) as Item;

/**
 * The largest of these numbers and `least`. For any number of them: a call with as many arguments as there are rows
 * overflows the stack.
 */
export function largest(numbers: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let most = least;
  for (const number of numbers) if (number > most) most = number;
  return most;
}
