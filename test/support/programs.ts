import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** For NODE_OPTIONS: the clock of `eod` begins at TEST_CLOCK. */
export const SET_CLOCK = `--import ${pathToFileURL(path('set-clock.mjs'))}`;

/**
 * Makes a folder for PATH with `eod`, as if it were installed, `npx`, which starts it, and these programs.
 *
 * @param first what `eod` does before it starts, in sh.
 */
export function writePrograms(
  folder: string,
  others: Readonly<Record<string, string>> = {},
  first = '',
): void {
  mkdirSync(folder, { recursive: true });
  const programs = {
    eod: `${first}\nexec '${process.execPath}' '${path('../../bin/eod.mjs')}' "$@"`,
    npx: '[ "$1" = eod ] || exit 127; shift; exec eod "$@"',
    ...others,
  };
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
}
