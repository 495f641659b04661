import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeAfterFile } from './closing.ts';

/**
 * A new empty folder, removed after the file's last test. Open to be entered by all, so that a private
 * Postgres started in it by root can live there.
 */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'eod-test-'));
  chmodSync(folder, 0o755);
  closeAfterFile(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
