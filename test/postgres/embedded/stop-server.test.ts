import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { stopServer } from '../../../src/postgres/embedded/cluster.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test.each([
  ['is empty', ''],
  ['names no process', 'eod\n'],
  ['names a process that has ended', '999999999\n'],
])('no process gets a signal for a cluster whose postmaster.pid %s', async (_, content) => {
  const data = temporaryFolder();
  writeFileSync(join(data, 'postmaster.pid'), content);
  const kill = process.kill.bind(process);
  // A signal to process 0 would end the tests.
  const spy = vi.spyOn(process, 'kill').mockImplementation((pid, signal) => {
    if (signal === 0) return kill(pid, 0);
    throw new Error(`${signal} was sent to ${pid}`);
  });
  await expect(stopServer(data).finally(() => spy.mockRestore())).resolves.toBeUndefined();
});
