import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadConfig } from '../../../src/core/config.ts';
import { createLog } from '../../../src/core/log.ts';
import { isServing } from '../../../src/postgres/embedded/cluster.ts';
import { startEmbeddedPostgres } from '../../../src/postgres/embedded/index.ts';
import { freePort } from '../../support/free-port.ts';

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
  const lines: string[] = [];
  const server = await startEmbeddedPostgres({
    dataDir: dataFolder(),
    log: createLog(loadConfig({ EOD_LOG_LEVEL: 'info', EOD_LOG_FORMAT: 'json' }), {
      write: (line) => lines.push(line),
    }),
    findPort: async () => ports.shift() ?? freePort(),
  });
  expect(new URL(server.url).port).not.toBe(String(taken));
  // That of the process that logs, none of the server: readers differ over JSON with two members of one name.
  expect(lines.at(-1)).toMatch(/private Postgres is up/);
  expect(lines.at(-1)?.match(/"pid":/g)).toHaveLength(1);
  expect(await isServing(server.url)).toBe(true);
  await server.stop();
  expect(await isServing(server.url)).toBe(false);
});

test('the private Postgres is reached without TLS, whatever PGSSLMODE demands of other servers', async () => {
  vi.stubEnv('PGSSLMODE', 'require');
  onTestFinished(() => void vi.unstubAllEnvs());
  const server = await startEmbeddedPostgres({ dataDir: dataFolder() });
  expect(await isServing(server.url)).toBe(true);
  await server.stop();
});

test('if every port is taken, the private Postgres gives up and says why', async () => {
  const taken = await takenPort();
  let portRequests = 0;
  const started = startEmbeddedPostgres({
    dataDir: dataFolder(),
    findPort: async () => {
      portRequests += 1;
      return taken;
    },
  });
  await expect(started).rejects.toThrow(
    /did not start; the end of .*server\.log:\n(.*\n)*.*Address already in use/,
  );
  expect(portRequests).toBe(5);
});

test('if the private Postgres does not start, it says why, no matter who tried to connect meanwhile', async () => {
  const dataDir = dataFolder();
  const server = await startEmbeddedPostgres({ dataDir });
  const client = new pg.Client({ connectionString: server.url });
  // The server that is killed below ends this connection.
  client.on('error', () => undefined);
  await client.connect();
  await client.query('create table notes (note text)');
  await client.query("insert into notes values ('one')");
  await client.query('checkpoint');
  await client.query("insert into notes values ('two')");
  const { rows } = await client.query<{ folder: string; file: string }>(
    "select current_setting('data_directory') as folder, pg_relation_filepath('notes') as file",
  );
  const [relation] = rows;
  if (relation === undefined) throw new Error('the table has no file');
  const ended = new Promise((resolve) => client.once('end', resolve));
  process.kill(
    Number(readFileSync(join(relation.folder, 'postmaster.pid'), 'utf8').split('\n')[0]),
    'SIGKILL',
  );
  await ended;
  await server.stop();
  // Each write to it fails, as on a full disk, so the server cannot finish its recovery.
  const file = join(relation.folder, relation.file);
  renameSync(file, `${file}.kept`);
  symlinkSync('/dev/full', file);
  await expect(startEmbeddedPostgres({ dataDir })).rejects.toThrow(/No space left on device/);
});
