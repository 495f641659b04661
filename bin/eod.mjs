#!/usr/bin/env node
import { existsSync } from 'node:fs';

// A checkout runs its TypeScript as it stands; an installed package has only the build. Both run in
// this very process, so that a signal sent to `eod` reaches its shutdown code and not a wrapper.
const source = new URL('../src/cli/main.ts', import.meta.url);

if (existsSync(source)) {
  const { register } = await import('tsx/esm/api');
  register();
  await import(source.href);
} else {
  await import('../dist/cli/main.js');
}
