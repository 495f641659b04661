import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import config from '../../drizzle.config.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'eod-test-migrations-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('migrations/ says what the declarations say: nothing is left to generate', async () => {
  const known = readdirSync(join(ROOT, 'migrations'));
  const out = join(scratch, 'migrations');
  cpSync(join(ROOT, 'migrations'), out, { recursive: true });
  const file = join(scratch, 'drizzle.config.json');
  writeFileSync(file, JSON.stringify({ ...config, out: relative(ROOT, out) }));
  const kit = join(ROOT, 'node_modules/drizzle-kit/bin.cjs');
  const { stdout } = await promisify(execFile)(process.execPath, [kit, 'generate', `--config=${file}`], {
    cwd: ROOT,
    // It asks when it cannot tell a new column from a renamed one, and nobody is here to answer.
    timeout: 30_000,
  });
  const migrations = readdirSync(out).filter((name) => name.endsWith('.sql') && !known.includes(name));
  const sql = migrations.map((name) => readFileSync(join(out, name), 'utf8')).join('\n');
  expect(sql, 'run: npm run migrations:generate').toBe('');
  expect(stdout).toContain('nothing to migrate');
});
