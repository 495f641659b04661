import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** Which folders a folder may import besides itself. Data moves one way, so do imports; nothing imports `cli`. */
const ALLOWED: Record<string, readonly string[]> = {
  core: [],
  declaration: ['core'],
  calendar: ['core'],
  operations: ['core', 'declaration'],
  extract: ['core', 'declaration', 'operations'],
  postgres: ['core'],
  state: ['core', 'declaration', 'operations', 'postgres'],
  load: ['core', 'declaration', 'operations', 'postgres', 'state'],
  quality: ['core', 'declaration', 'calendar', 'operations', 'postgres', 'state', 'load'],
  export: ['core', 'declaration', 'operations', 'postgres', 'state'],
  'migrate.ts': ['core', 'postgres', 'state', 'load'],
  sandbox: ['core', 'declaration', 'calendar', 'operations'],
  jobs: ['core', 'declaration', 'calendar', 'operations', 'extract', 'postgres', 'state', 'load', 'quality'],
  web: ['core', 'declaration', 'calendar', 'operations', 'postgres', 'state', 'load', 'quality', 'jobs'],
  cli: [
    ...['core', 'declaration', 'calendar', 'operations', 'extract', 'postgres', 'state', 'load', 'quality'],
    ...['export', 'migrate.ts', 'sandbox', 'jobs', 'web'],
  ],
};

/** `import … from 'x'`, `export … from 'x'`, `import 'x'`, `import('x')` and `import type` alike. */
const IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"\n]+)\1/g;

function importsOf(code: string): string[] {
  const bare = code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  return [...bare.matchAll(IMPORT)].map((match) => match[2] as string);
}

/** The files of the repository that a file imports, types included. */
function targetsOf(file: string, code: string): string[] {
  return importsOf(code)
    .filter((name) => name.startsWith('.'))
    .map((name) => posix.normalize(posix.join(posix.dirname(file), name)));
}

/** `file imports target` for every import of a folder that the file's own folder must not know. */
function violations(file: string, code: string): string[] {
  const folder = file.split('/')[0] as string;
  return targetsOf(file, code)
    .filter((target) => {
      const other = target.split('/')[0] as string;
      return other !== folder && !ALLOWED[folder]?.includes(other);
    })
    .map((target) => `${file} imports ${target}`);
}

/** One path `a → b → a` for each import that closes a circle. */
function circles(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const circles: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      circles.push([...path.slice(path.indexOf(file)), file].join(' → '));
    } else if (!finished.has(file)) {
      for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
      finished.add(file);
    }
  };
  for (const file of imports.keys()) visit(file, []);
  return circles;
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => file.split(sep).join('/'));
const codeOf = (file: string) => readFileSync(join(SRC, file), 'utf8');

describe('import directions', () => {
  test('the check sees every way to import', () => {
    const code = `
      import { a } from '../load/a.ts';
      import type {
        B,
      } from "../load/b.ts";
      export * from '../load/c.ts';
      import '../load/d.ts';
      const e = await import('../load/e.ts');
      // import { f } from '../load/f.ts';
      import { own } from './own.ts';
      import { core } from '../core/x.ts';
      import fs from 'node:fs';`;
    expect(violations('extract/x.ts', code)).toEqual(
      ['a', 'b', 'c', 'd', 'e'].map((name) => `extract/x.ts imports load/${name}.ts`),
    );
    expect(violations('cli/commands/up.ts', "import '../../jobs/x.ts'; import '../args.ts';")).toEqual([]);
    expect(violations('jobs/x.ts', "import '../cli/main.ts'; import '../../test/support/x.ts';")).toEqual([
      'jobs/x.ts imports cli/main.ts',
      'jobs/x.ts imports ../test/support/x.ts',
    ]);
  });

  test('every file lies in one of the known folders', () => {
    const folders = Object.keys(ALLOWED);
    expect(files.filter((file) => !folders.includes(file.split('/')[0] as string))).toEqual([]);
    expect(files.length).toBeGreaterThan(20);
  });

  test('no file imports against the direction', () => {
    expect(files.flatMap((file) => violations(file, codeOf(file)))).toEqual([]);
  });

  test('no two folders side by side import each other', () => {
    const arrows = new Set<string>();
    for (const file of files) {
      const folder = posix.dirname(file);
      for (const target of targetsOf(file, codeOf(file))) arrows.add(`${folder} → ${posix.dirname(target)}`);
    }
    // A folder within another one is a part of it.
    const areApart = (file: string, other: string) =>
      file !== other && !`${file}/`.startsWith(`${other}/`) && !`${other}/`.startsWith(`${file}/`);
    const both = [...arrows].filter((arrow) => {
      const [first, second] = arrow.split(' → ') as [string, string];
      return areApart(first, second) && arrows.has(`${second} → ${first}`);
    });
    expect(arrows.size).toBeGreaterThan(50);
    expect(both).toEqual([]);
  });

  test('the check finds circles, also those of types alone', () => {
    const sources = {
      'a.ts': "import type { B } from './b.ts';",
      'b.ts': "import { c } from './c.ts'; import './d.ts';",
      'c.ts': "import { type A } from './a.ts';",
      'd.ts': "import './e.ts';",
      'e.ts': "export * from './e.ts';",
      'f.ts': "import './a.ts'; import './d.ts';",
    };
    const imports = Object.entries(sources).map(([file, code]) => [file, targetsOf(file, code)] as const);
    expect(circles(new Map(imports))).toEqual(['a.ts → b.ts → c.ts → a.ts', 'e.ts → e.ts']);
  });

  test('no files import each other in a circle', () => {
    expect(circles(new Map(files.map((file) => [file, targetsOf(file, codeOf(file))])))).toEqual([]);
  });

  test('relative imports name their file with its ending', () => {
    const vague = files.flatMap((file) =>
      importsOf(codeOf(file))
        .filter((name) => name.startsWith('.') && !/\.(tsx?|json)$/.test(name))
        .map((name) => `${file} imports ${name}`),
    );
    expect(vague).toEqual([]);
  });
});
