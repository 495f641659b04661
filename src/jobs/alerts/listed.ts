/** At most this many items are listed in one message; the facts hold them all. */
const LISTED = 5;

/** Items for a message: the first of them, and how many more there are. */
export function listed(items: readonly string[]): string {
  const more = items.length - LISTED;
  return items.slice(0, LISTED).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
