import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The pages for users, the README and the page about installing first: the others use what these have loaded. */
export const PAGES = [
  'README.md',
  'docs/operations.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md') && name !== 'operations.md')
    .map((name) => `docs/${name}`),
  'CONTRIBUTING.md',
  'SECURITY.md',
];

/** A block of code of a page. */
export interface Block {
  readonly page: string;
  /** Of its first line of code. */
  readonly line: number;
  /** The language of a fenced block; empty for an indented one. */
  readonly language: string;
  readonly text: string;
  /** What the page says between this block and the next. */
  readonly after: string;
}

/** An indented block begins after an empty line or with the page; within a list, it is indented more. */
export function blocksOf(page: string): Block[] {
  const lines = readFileSync(join(ROOT, page), 'utf8').split('\n');
  const found: { line: number; language: string; text: string[]; after: string[] }[] = [];
  let open: (typeof found)[number] | undefined;
  let fence = '';
  for (const [at, line] of lines.entries()) {
    const [, mark = '', language = ''] = /^ *(`{3,})(\w*)/.exec(line) ?? [];
    const isIndented = fence === '' && /^ {4,}\S/.test(line);
    if (fence !== '' && mark.startsWith(fence)) {
      fence = '';
      open = undefined;
    } else if (fence !== '') {
      open?.text.push(line);
    } else if (mark !== '') {
      fence = mark;
      open = { line: at + 2, language, text: [], after: [] };
      found.push(open);
    } else if (isIndented && open !== undefined) {
      open.text.push(line);
    } else if (isIndented && (lines[at - 1] ?? '') === '') {
      open = { line: at + 1, language: '', text: [line], after: [] };
      found.push(open);
    } else {
      open = undefined;
      found.at(-1)?.after.push(line);
    }
  }
  return found.map(({ text, after, ...rest }) => ({
    page,
    ...rest,
    text: withoutIndent(text),
    after: after.join('\n'),
  }));
}

function withoutIndent(lines: readonly string[]): string {
  const indents = lines.filter((line) => line.trim() !== '').map((line) => line.search(/\S/));
  return lines.map((line) => line.slice(Math.min(...indents))).join('\n');
}

/** Fenced blocks with commands of a shell. */
const SHELLS = ['sh', 'bash', 'shell', 'console'];

/** Blocks that show something else than commands, by their first line. */
const NO_COMMANDS: readonly (readonly [RegExp, string])[] = [
  [/^select /, 'SQL: run as such'],
  [/^(\{runId|files: \[)/, 'the shape of a JSON document'],
  [/^EOD_ALERT_WEBHOOK=https/, 'a line of .env'],
];

/** Commands that are not run here, and where they are. */
const NOT_RUN: readonly (readonly [RegExp, string])[] = [
  [/^npm /, 'takes minutes; before the commands of the README its demo is made'],
  [/^git clone REPOSITORY /, 'its address is not published'],
  [/^npx vitest /, 'the suite itself; contributing.test.ts looks for its files'],
  [/^(docker|kubectl) /, 'needs a registry and a cluster: test/repo reads the manifests'],
  [/^(createdb|pg_dump|pg_restore|psql) /, 'needs clients as new as the server: services.slow.test.ts'],
];

export interface Command {
  /** As it is typed, without the prompt; lines that end with a backslash are joined. */
  readonly text: string;
  /** What the page says that it prints in its comment, of figures that do not depend on the day. */
  readonly prints: string;
  /** Everything that it prints, as the page shows it beneath the prompt; empty if it shows nothing. */
  readonly output: string;
}

/** What there is to do with a block. */
export type Content =
  | { readonly kind: 'commands'; readonly commands: readonly Command[] }
  | { readonly kind: 'sql' }
  | { readonly kind: 'other'; readonly why: string };

/** @returns null for a block in another language. @throws Error for one of which it is not known what it is. */
export function contentOf({ page, line, language, text }: Block): Content | null {
  if (language !== '' && !SHELLS.includes(language)) return null;
  for (const [pattern, why] of NO_COMMANDS) {
    if (pattern.test(text)) return why.startsWith('SQL') ? { kind: 'sql' } : { kind: 'other', why };
  }
  const hasPrompts = text.startsWith('$ ');
  const lines = text.replaceAll(/ *\\\n */g, ' ').split('\n');
  const typed = hasPrompts
    ? lines
        .join('\n')
        .slice(2)
        .split('\n$ ')
        .map((one) => ({ text: one.split('\n', 1)[0] ?? '', output: one.split('\n').slice(1).join('\n') }))
    : lines.map((text) => ({ text, output: '' }));
  const strange = typed.filter(
    ({ text: one }) =>
      !/^([A-Z_]+=\S+ )*(npx )?eod |^echo '[^']*' > \w+\.json$|^export /.test(one) && !whyNotRun(one),
  );
  if (strange.length > 0) {
    throw new Error(`${page}:${line}: neither run here nor in a list that says why not: ${strange[0]?.text}`);
  }
  return {
    kind: 'commands',
    commands: typed
      .filter(({ text: one }) => !whyNotRun(one))
      .map((one) => ({ ...one, prints: / # ([\d.]+)$/.exec(one.text)?.[1] ?? '' })),
  };
}

const whyNotRun = (command: string) => NOT_RUN.find(([pattern]) => pattern.test(command))?.[1];

/** The patterns that no block and no command of these pages needs any more. */
export function unusedPatterns(blocks: readonly Block[]): string[] {
  const lines = blocks.flatMap(({ text }) => text.split('\n'));
  return [
    ...NO_COMMANDS.filter(([pattern]) => !blocks.some(({ text }) => pattern.test(text))),
    ...NOT_RUN.filter(([pattern]) => !lines.some((line) => pattern.test(line))),
  ].map(([pattern]) => String(pattern));
}
