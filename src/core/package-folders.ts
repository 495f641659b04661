import { join } from 'node:path';

/**
 * The folder of our modules: src/, or dist/, where the build bundles them into few files. Both have the files beside the
 * modules in the same folders, and this module is one folder below in both (dist/chunks/). drizzle-kit, which reads no
 * file, compiles modules to CommonJS, where they do not know their folder.
 */
export const CODE = join(import.meta.dirname ?? '', '..');

/** The folder of package.json. */
export const PACKAGE = join(CODE, '..');
