/**
 * Small changes to SQL in texts, where Stryker can only take away a whole text: what is found on a line, and what it is
 * replaced by. All of it is lower case or has spaces around it, so that next to nothing else on a line of code looks like
 * it.
 */
const CHANGES = [
  [/(?<!between \S+) and /g, ' or '],
  [/ or /g, ' and '],
  [/ <= /g, ' < '],
  [/ < /g, ' <= '],
  [/ >= /g, ' > '],
  [/ > /g, ' >= '],
  [/\bnot exists \(/g, 'exists ('],
  [/ is null\b/g, ' is not null'],
  [/ is not null\b/g, ' is null'],
  [/ is distinct from /g, ' <> '],
  [/ is not distinct from /g, ' = '],
  [/ desc\b/g, ''],
  [/ filter \(where [^()]*\)/g, ''],
  [/\bgreatest\(/g, 'least('],
  [/\bleast\(/g, 'greatest('],
  [/\bmax\(/g, 'min('],
  [/\bmin\(/g, 'max('],
  [/\b(left|full) join\b/g, 'join'],
];

/** A line that is a comment, of the code or of the SQL. */
const COMMENT = /^\s*(\*|\/\/|\/\*|--)/;

/** The small changes to SQL in a file: where each is, and the text of the file with it. */
export function sqlMutants(text) {
  const lines = text.split('\n');
  return lines.flatMap((line, at) =>
    COMMENT.test(line)
      ? []
      : CHANGES.flatMap(([pattern, to]) =>
          [...line.matchAll(pattern)].map(({ index, 0: from }) => ({
            line: at + 1,
            column: index + 1,
            from: from.trim(),
            to: to.trim(),
            text: lines.with(at, `${line.slice(0, index)}${to}${line.slice(index + from.length)}`).join('\n'),
          })),
        ),
  );
}
