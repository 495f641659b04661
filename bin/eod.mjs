#!/usr/bin/env node
import { existsSync } from 'node:fs';

// An installed package has only the build it came with. A checkout may have changed since it was built.
if (existsSync(new URL('../src/cli/main.ts', import.meta.url))) {
  const { ensureBuilt } = await import('../scripts/build.mjs');
  const problem = await ensureBuilt();
  if (problem !== null) {
    process.stderr.write(`eod: ${problem}\n`);
    process.exit(2);
  }
}

// In this very process, so that a signal sent to `eod` reaches its shutdown code and not a wrapper.
await import('../dist/cli/main.js');
