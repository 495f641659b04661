import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const { scripts, engines } = z
  .object({ scripts: z.record(z.string(), z.string()), engines: z.object({ node: z.string() }) })
  .parse(JSON.parse(read('package.json')));

const pagesOf = (folder: string) => readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.md'));
const PAGES = ['.', 'docs', 'bench', 'test', 'test/chaos'].flatMap((folder) =>
  pagesOf(folder).map((name) => (folder === '.' ? name : `${folder}/${name}`)),
);

describe.each(PAGES)('%s', (page) => {
  const text = read(page);

  test('links to pages that exist', () => {
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] as string);
    const paths = links
      .filter((link) => !/^(https?:|#)/.test(link))
      .map((link) => link.split('#')[0] as string);
    expect(paths.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([]);
  });

  test('names scripts of npm that exist', () => {
    const names = [...text.matchAll(/npm run (?:-s )?([a-z][a-z:]*)/g)].map((match) => match[1] as string);
    expect(names.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

/** The anchors of a page, as GitHub makes them of its headings. */
const anchorsOf = (page: string) =>
  [...read(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

test('links to a part of a page name one of its headings', () => {
  const dead = PAGES.flatMap((page) =>
    [...read(page).matchAll(/\]\(([\w./-]*)#([\w-]+)\)/g)].flatMap(([, path = '', anchor = '']) => {
      const target = path === '' ? page : join(dirname(page), path);
      return anchorsOf(target).includes(anchor) ? [] : [`${page}: ${path}#${anchor}`];
    }),
  );
  expect(dead).toEqual([]);
});

test('README.md names the two commands of a fresh machine', () => {
  for (const command of ['npm ci && npm run demo', 'npm ci && npm test'])
    expect(read('README.md')).toMatch(new RegExp(`^    ${command} `, 'm'));
});

test('docs/README.md lists each page once', () => {
  const listed = [...read('docs/README.md').matchAll(/\]\(([a-z-]+\.md)\)/g)].map(([, page]) => page);
  expect(listed.toSorted()).toEqual(
    pagesOf('docs')
      .filter((page) => page !== 'README.md')
      .toSorted(),
  );
});

test('code, messages, manifests and the changelog name pages that exist', () => {
  const files = ['src', 'bench', 'deploy', 'migrations', 'scripts', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|tsx|mjs|ya?ml|sql|json|py)$/.test(file) && !file.includes('meta/'))
      .map((file) => `${folder}/${file}`),
  );
  const references = [...files, '.env.example', 'CHANGELOG.md', 'Dockerfile', 'docker-compose.yml'].flatMap(
    (file) => [...read(file).matchAll(/(?<!\w)docs\/[\w-]+\.md/g)].map(([page]) => ({ file, page })),
  );
  expect(references.length).toBeGreaterThan(30);
  expect(references.filter(({ page }) => !existsSync(join(ROOT, page)))).toEqual([]);
});

test.each(['CONTRIBUTING.md', 'SECURITY.md', 'ARCHITECTURE.md'])('%s names files that exist', (page) => {
  const pathPattern = /(?<![\w/.-])(?:src|test|scripts|docs|deploy|migrations|bench|\.ci)\/[\w./-]*\w/g;
  const paths = [...read(page).matchAll(pathPattern)].map(([path]) => path);
  // The one that a reader is to make.
  const newPaths = ['src/operations/GetYours.ts'];
  expect(paths.filter((path) => !newPaths.includes(path) && !existsSync(join(ROOT, path)))).toEqual([]);
});

test('the workflow runs .ci/run on the oldest Node that is promised, the LTS before and that of the image', () => {
  const Step = z.object({ run: z.string().optional() });
  const Workflow = z.object({
    permissions: z.object({ contents: z.literal('read') }),
    jobs: z.object({
      test: z.object({
        strategy: z.object({ matrix: z.object({ node: z.array(z.string()) }) }),
        steps: z.array(Step),
      }),
    }),
  });
  const workflow = read('.github/workflows/ci.yml');
  const { jobs } = Workflow.parse(parse(workflow));
  const { steps, strategy } = jobs.test;
  const image = /^FROM node:(\d+)-slim$/m.exec(read('Dockerfile'))?.[1];
  expect(strategy.matrix.node).toEqual([engines.node.replace('>=', ''), '22', image]);
  expect(steps.at(-1)?.run).toBe('.ci/run');
  // On a machine with the oldest Node, .ci/run runs the two others as well.
  const others = [...read('.ci/run').matchAll(/'node-\d+: node scripts\/test-on-lts\.mjs (\d+)'/g)];
  expect(others.map((match) => match[1])).toEqual([image, '22']);
  // By commit, because a tag can be moved to other code.
  const uses = [...workflow.matchAll(/\buses: (.*)$/gm)].map((match) => match[1]);
  expect(uses).toHaveLength(2);
  for (const action of uses) expect(action).toMatch(/^actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  const paths = steps.flatMap(({ run }) =>
    [...(run ?? '').matchAll(/scripts\/[\w.-]+|\.ci\/\w+/g)].map(([path]) => path),
  );
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('nothing is addressed as if it were published: neither a repository nor a package', () => {
  const { repository, homepage, bugs, keywords, private: isPrivate } = JSON.parse(read('package.json'));
  expect({ repository, homepage, bugs, isPrivate }).toEqual({ isPrivate: true });
  expect(keywords).toEqual(expect.arrayContaining(['nse', 'bse', 'end-of-day', 'postgres']));
  const texts = [...PAGES, 'Dockerfile', '.github/ISSUE_TEMPLATE/config.yml'].map(read).join('\n');
  expect(texts).not.toMatch(
    /github\.com\/eod-pipeline|githubusercontent|npmjs\.com|npm (?:install|i) eod-pipeline/,
  );
});

test('README.md shows pictures of this repository', () => {
  const pictures = [...read('README.md').matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, path = '']) => path);
  expect(pictures.length).toBeGreaterThan(0);
  expect(pictures.filter((path) => !/^docs\/images\//.test(path) || !existsSync(join(ROOT, path)))).toEqual(
    [],
  );
});

test('docs/performance.md compares with other tools by what was measured', () => {
  const Load = z.object({ rowsPerSecond: z.number(), walBytesPerRow: z.number() });
  const Line = z.object({
    name: z.string(),
    first: Load,
    reload: Load.nullable(),
    peakMb: z.number().nullable(),
  });
  const { lines } = z
    .object({ lines: z.array(Line.extend({ oursOverTheirs: z.record(z.string(), z.number().nullable()) })) })
    .parse(JSON.parse(read('bench/peers/results-indexes.json')));
  const lineOf = (name: string) => lines.find((line) => line.name === name);
  const tools = ['dlt', 'unnest', 'eod-pipeline'].map(lineOf);
  const row = (head: string, figure: (line: z.infer<typeof Line> | undefined) => number | null | undefined) =>
    `| ${[head, ...tools.map((tool) => Math.round(figure(tool) ?? 0).toLocaleString('en'))].join(' | ')} |`;
  const page = read('docs/performance.md');
  expect(page).toContain(row('first load, rows a second', (line) => line?.first.rowsPerSecond));
  expect(page).toContain(
    row('the same responses again, rows a second', (line) => line?.reload?.rowsPerSecond),
  );
  expect(page).toContain(row('WAL of that, bytes a row', (line) => line?.reload?.walBytesPerRow));
  expect(page).toContain(row('memory, MB', (line) => line?.peakMb));
  const { first, reload } = lineOf('dlt')?.oursOverTheirs ?? {};
  const times = [Number(first).toFixed(1), Number(reload).toFixed(0)];
  expect(page).toContain(`was ${times[0]} times as fast as dlt's, and a repeated one ${times[1]} times`);
});

test('figures of README.md that lead to docs/performance.md are in it', () => {
  const linked = read('README.md')
    .split('\n\n')
    .flatMap((paragraph) => [
      ...paragraph.matchAll(/(?<=[.;:] |^)([^.;:]*(?:\.\d[^.;:]*)*)\]\(docs\/performance\.md/g),
    ])
    .flatMap(([, before = '']) => before.match(/\d[\d,.]*\d|\d/g) ?? []);
  expect(linked.length).toBeGreaterThanOrEqual(2);
  const page = read('docs/performance.md');
  expect(linked.filter((figure) => !new RegExp(`(?<![\\d.,])${figure}(?![\\d,])`).test(page))).toEqual([]);
});

describe('.github/ISSUE_TEMPLATE', () => {
  const Form = z.strictObject({
    name: z.string(),
    description: z.string(),
    labels: z.array(z.string()),
    body: z.array(
      z.strictObject({
        type: z.enum(['markdown', 'textarea', 'input', 'dropdown', 'checkboxes']),
        id: z.string().optional(),
        attributes: z.strictObject({
          label: z.string().optional(),
          value: z.string().optional(),
          description: z.string().optional(),
          render: z.string().optional(),
        }),
        validations: z.strictObject({ required: z.boolean() }).optional(),
      }),
    ),
  });
  const files = readdirSync(join(ROOT, '.github/ISSUE_TEMPLATE')).filter((name) => name !== 'config.yml');

  test.each(files)('%s is a form that asks for the output of eod doctor --json', (file) => {
    const { body } = Form.parse(parse(read(`.github/ISSUE_TEMPLATE/${file}`)));
    const fields = body.filter(({ type }) => type !== 'markdown');
    expect(fields.map(({ attributes }) => attributes.label)).toContain('eod doctor --json');
    expect(new Set(fields.map(({ id }) => id)).size).toBe(fields.length);
  });

  test('the form for bugs requires the output of eod doctor --json', () => {
    const { body } = Form.parse(parse(read('.github/ISSUE_TEMPLATE/bug.yml')));
    expect(body.find(({ id }) => id === 'doctor')?.validations).toEqual({ required: true });
  });
});
