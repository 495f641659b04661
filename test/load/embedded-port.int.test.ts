import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isServing } from '../../src/load/database/embedded/cluster.ts';
import { startEmbeddedPostgres } from '../../src/load/database/embedded/index.ts';
import { freePort } from '../support/free-port.ts';

/** A port on which somebody listens already. */
async function takenPort(): Promise<number> {
  const other = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  return (other.address() as AddressInfo).port;
}

function dataFolder(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'eod-port-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  // Started by root, the server runs as somebody else, who must be able to get in.
  chmodSync(dataDir, 0o755);
  return dataDir;
}

test('the private Postgres takes another port if the one it found is taken when it starts', async () => {
  const taken = await takenPort();
  const ports = [taken, taken, await freePort()];
  const server = await startEmbeddedPostgres({
    dataDir: dataFolder(),
    findPort: async () => ports.shift() ?? freePort(),
  });
  expect(new URL(server.url).port).not.toBe(String(taken));
  expect(await isServing(server.url)).toBe(true);
  await server.stop();
  expect(await isServing(server.url)).toBe(false);
});

test('if every port is taken, it says so and gives up', async () => {
  const taken = await takenPort();
  let asked = 0;
  const started = startEmbeddedPostgres({
    dataDir: dataFolder(),
    findPort: async () => {
      asked += 1;
      return taken;
    },
  });
  await expect(started).rejects.toThrow(
    /did not start; the end of .*server\.log:\n(.*\n)*.*Address already in use/,
  );
  expect(asked).toBe(5);
});
