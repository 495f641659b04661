const WIDTH = 100;

const TOKEN =
  /\s*(?:'[^']*'|(?:left|cross) join\b|(?:group|order) by\b|(?:union|except) select\b|union all\b|insert into\b|delete from\b|is distinct from\b|[(),]|[^\s()',]+)/g;
/** Words that begin a line where a statement is too long for one, and then where a clause still is. */
const CLAUSES =
  /^(?:select|from|where|group by|order by|limit|union all|(?:union|except) select|returning|set)$/;
const CASES = /^(?:when|else|end)$/;
const PARTS = /^(?:(?:left |cross )?join|and|or)$/;

/** A token with the blank before it, or what is in a pair of parentheses. */
type Part = string | { readonly open: string; readonly inner: readonly Part[] };

/**
 * Lays out a statement for a reader: what is too long for a line is broken before its clauses, their parts, and after
 * commas, and parentheses are opened. Names that need no quotes have none. Nothing else is changed.
 */
export function formatSql(sql: string): string {
  const unquoted = sql.replaceAll(/"(?!left")([a-z_]+)"/g, '$1');
  return unquoted
    .split(/;\s*/)
    .map((statement) => layOut(nest(statement.match(TOKEN) ?? []), '').join('\n'))
    .join(';\n');
}

function nest(tokens: readonly string[]): readonly Part[] {
  const stack: { open: string; inner: Part[] }[] = [{ open: '', inner: [] }];
  for (const token of tokens.map((text) => text.replace(/^\s+/, ' '))) {
    const group = stack.at(-1);
    if (token.trim() === '(') stack.push({ open: token, inner: [] });
    else if (token.trim() === ')' && group !== undefined) {
      stack.pop();
      stack.at(-1)?.inner.push(group);
    } else group?.inner.push(token);
  }
  return stack[0]?.inner ?? [];
}

const toText = (parts: readonly Part[]): string =>
  parts
    .map((part) => (typeof part === 'string' ? part : `${part.open}${toText(part.inner)})`))
    .join('')
    .trim();

/** Splits before each of these words, or after each comma. */
function split(parts: readonly Part[], isBreak: (part: string) => boolean, after = 0): Part[][] {
  const pieces: Part[][] = [[]];
  for (const [at, part] of parts.entries()) {
    const word = parts[at - after];
    if (at > 0 && typeof word === 'string' && isBreak(word.trim())) pieces.push([]);
    pieces.at(-1)?.push(part);
  }
  return pieces;
}

function layOut(parts: readonly Part[], indent: string): string[] {
  const fits = (text: string) => indent.length + text.length <= WIDTH;
  if (fits(toText(parts))) return [indent + toText(parts)];
  const clauses = split(parts, (word) => CLAUSES.test(word));
  if (clauses.length > 1) return clauses.flatMap((clause) => layOut(clause, indent));
  for (const pieces of [
    fill(
      split(parts, (word) => word === ',', 1),
      fits,
    ),
    split(parts, (word) => CASES.test(word)),
    split(parts, (word) => PARTS.test(word)),
  ]) {
    if (pieces.length > 1)
      return pieces.flatMap((piece, nth) => layOut(piece, nth === 0 ? indent : `${indent}  `));
  }
  return openGroup(parts, indent);
}

/** Puts as many items into each line as fit. */
function fill(items: readonly Part[][], fits: (text: string) => boolean): Part[][] {
  const lines: Part[][] = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last !== undefined && fits(`  ${toText([...last, ...item])}`)) last.push(...item);
    else lines.push([...item]);
  }
  return lines;
}

/** Puts what is in the longest parentheses on lines of its own. */
function openGroup(parts: readonly Part[], indent: string): string[] {
  const lengths = parts.map((part) => (typeof part === 'string' ? 0 : toText([part]).length));
  const at = lengths.indexOf(Math.max(...lengths));
  const group = parts[at];
  if (group === undefined || typeof group === 'string') return [indent + toText(parts)];
  const after = layOut(parts.slice(at + 1), indent)
    .join('\n')
    .trimStart();
  const blank = String(parts[at + 1] ?? '').startsWith(' ') ? ' ' : '';
  return [
    `${indent}${toText(parts.slice(0, at))}${group.open}`,
    ...layOut(group.inner, `${indent}  `),
    `${indent})${blank}${after}`,
  ];
}
