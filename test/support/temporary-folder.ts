import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const folders: string[] = [];

/**
 * A new empty folder, removed after the file's last test. Open to be entered by all, so that a private
 * Postgres started in it by root can live there.
 */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'eod-test-'));
  chmodSync(folder, 0o755);
  folders.push(folder);
  return folder;
}

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
