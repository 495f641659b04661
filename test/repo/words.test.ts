import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const filesIn = (folder: string, name: RegExp) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => name.test(file))
    .map((file) => `${folder}/${file}`);

const PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', ...filesIn('docs', /\.md$/)];
const SOURCES = [...filesIn('src', /\.tsx?$/), ...filesIn('migrations/repeatable', /\.sql$/), '.env.example'];

/** Words that have a standard one instead, in sentences and in names. */
const INSTEAD: readonly (readonly [RegExp, string])[] = [
  [/answer/gi, 'response, to respond; a reply of a person'],
  [/question/gi, 'request; entry of the coverage; query in SQL'],
  [/(?<![a-z])ask(?:ed|s|ing)(?![a-z])/gi, 'requested, requests'],
  [/(?<![a-z])(?:told|tells)(?![a-z])/gi, 'reported, stated; distinguished, where it was told apart'],
  [/\bwork(?:s|ed|ing)?(?:\s+(?:\*|\/\/|--)?\s*(?:it|them))?[\s*/]+out\b|workedOut|workOut/gi, 'computed'],
  [/\baway\b/gi, 'unreachable, missing'],
  [/\bby (?:itself|themselves)\b/gi, 'automatically, separately'],
  [/\bwhoever\b/gi, 'anyone who, the process that'],
  [/(?<![a-z])places?(?![a-z])|[a-z]Places?(?![a-z])/g, 'position in an order; location; rank'],
  [/\bbeyond the history of\b/gi, 'too old for'],
  [/\bnever[ _]asked\b/gi, 'not requested yet'],
  [/\bcounts? as\b(?! \()/gi, 'is taken as, is'],
  [/\b(?:is|are) for\b/gi, 'the verb that is meant: concerns, belongs to, reads'],
  [/doubt/gi, 'suspicious, where a response is meant; unclear, where a text is'],
  [/held[ _]back|heldBack/gi, 'withheld'],
  [/(?:refused|kept) withdrawal|withdrawals? (?:is|are|was|were) (?:refused|kept)/gi, 'withheld'],
  [/\bpull(?:s|ed|ing)?\b/gi, 'load, request'],
  [/’/g, "the apostrophe '"],
];

/** A sentence of a comment that is a question about what it describes. */
const QUESTION =
  /(?:(?:\/\*\*|^ *\*|^ *\/\/|[.:]) |IS ')(?:Is|Are|Was|Were|Has|Have|Do|Does|Did|May|Can) [^?.\n]*(?:\n *(?:\*|\/\/) [^?.\n]*)*\?/gm;

/** What is meant otherwise: a person is asked, or it is an idiom. By file; `*` in each. */
const ALLOWED: Readonly<Record<string, readonly RegExp[]>> = {
  '*': [/\bin place of\b/gi, /\binto place\b/g, /\bin one place\b/g],
  'src/extract/diagnostics.ts': [/\['’\]/g],
  'src/cli/cli.ts': [/question/gi, /\bAsks (the person|on a terminal)\b/g],
  'src/cli/commands/completion.ts': [/\bit asks `eod complete`/g],
};

function found(path: string): string[] {
  const allowed = [...(ALLOWED['*'] ?? []), ...(ALLOWED[path] ?? [])];
  const text = allowed.reduce((rest, one) => rest.replace(one, ''), read(path));
  const words = INSTEAD.flatMap(([word, instead]) =>
    [...new Set([...text.matchAll(word)].map(([one]) => one.replace(/\s+/g, ' ')))].map(
      (one) => `"${one}": write ${instead}`,
    ),
  );
  const questions = SOURCES.includes(path)
    ? [...text.matchAll(QUESTION)].map(([one]) => `a comment that is a question: ${one}`)
    : [];
  return [...words, ...questions];
}

describe('the words of docs/glossary.md and their standard synonyms', () => {
  test.each(PAGES)('%s', (page) => {
    expect(found(page)).toEqual([]);
  });

  test('sources: names, comments, help and messages', () => {
    const all = SOURCES.map((path) => [path, found(path)] as const).filter(([, wrong]) => wrong.length > 0);
    expect(Object.fromEntries(all)).toEqual({});
  });

  test('the glossary has at most twelve words, and docs/README.md leads to it', () => {
    const words = [...read('docs/glossary.md').matchAll(/^- \*\*([^*]+)\*\*/gm)].map(([, word]) => word);
    expect(words.length).toBeLessThanOrEqual(12);
    expect(read('docs/README.md')).toContain('(glossary.md)');
  });
});
