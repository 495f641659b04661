// To read or write the members of an object one by one by names in variables takes V8 ten times as long as in code that
// has the names, because it looks up the place of each anew. So such code is compiled for the names of a table or file.

/** Makes an object of the values of its members, in the order of their names. */
type ObjectMaker<Value> = (values: readonly Value[]) => Record<string, Value>;

/** Writes the members of an object into a list, in the order of their names. */
type MemberReader<Value> = (object: Readonly<Record<string, Value>>, values: (Value | undefined)[]) => void;

/** So many functions are remembered: more than there are tables and formats of files. */
const MOST_REMEMBERED = 500;

/** Remembers what is compiled for a list of names. */
function compileOnce<Name, Compiled>(compile: (names: readonly Name[]) => Compiled) {
  const known = new Map<string, Compiled>();
  return (names: readonly Name[]): Compiled => {
    const key = JSON.stringify(names);
    const compiled = known.get(key) ?? compile(names);
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(key, compiled);
    return compiled;
  };
}

const compileAnyMaker = compileOnce((names: readonly string[]) => {
  // A computed name takes four times as long, but a plain `__proto__` would set the prototype.
  const memberName = (name: string) => (name === '__proto__' ? `["${name}"]` : JSON.stringify(name));
  const members = names.map((name, at) => `${memberName(name)}: values[${at}]`);
  return new Function('values', `return { ${members.join(', ')} };`);
});

/** Makes the function that makes objects with these names, which differ. */
export const compileMaker = <Value>(names: readonly string[]) => compileAnyMaker(names) as ObjectMaker<Value>;

const compileAnyReader = compileOnce((names: readonly (string | null)[]) => {
  const steps = names.map((name, at) =>
    name === null ? '' : `values[${at}] = object[${JSON.stringify(name)}];`,
  );
  return new Function('object', 'values', steps.join('\n'));
});

/** Makes the function that reads the members with these names; where the name is null, the list keeps its value. */
export const compileReader = <Value>(names: readonly (string | null)[]) =>
  compileAnyReader(names) as MemberReader<Value>;
