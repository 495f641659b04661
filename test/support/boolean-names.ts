/** Members whose value is not ours to name: of the source's records, of a setting, of an error of another library. */
const OTHERS: readonly string[] = ['sample', 'record', 'value', 'err'];

/** The paths of all booleans in a JSON document whose names do not begin with `is` or `has`. */
export function misnamedBooleans(document: unknown, path = ''): string[] {
  if (typeof document !== 'object' || document === null) return [];
  return Object.entries(document).flatMap(([key, value]) => {
    if (OTHERS.includes(key)) return [];
    // A list of booleans has the name of one.
    const name = Array.isArray(document) ? `${path}[]` : `${path}.${key}`;
    if (typeof value !== 'boolean') return misnamedBooleans(value, name);
    return /\.(is|has)[A-Z_][A-Za-z_\d]*(\[\])*$/.test(name) ? [] : [name];
  });
}
