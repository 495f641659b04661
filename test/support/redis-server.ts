import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { waitFor } from './wait-for.ts';

export interface RedisServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** A real Redis on a free loopback port that keeps nothing on disk; undefined where there is none to start. */
export async function startRedis(): Promise<RedisServer | undefined> {
  if (spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status !== 0) return undefined;
  const dir = mkdtempSync(join(tmpdir(), 'eod-test-redis-'));
  const port = await freePort();
  const options = {
    port,
    bind: '127.0.0.1',
    dir,
    save: '',
    appendonly: 'no',
    'maxmemory-policy': 'noeviction',
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn('redis-server', args, { stdio: 'ignore' });
  // For a run that is broken off: then only what needs no waiting can still be done.
  const abandon = () => {
    server.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  };
  process.once('exit', abandon);
  const url = `redis://127.0.0.1:${port}`;
  await waitFor(() => isReady(url), { what: `redis-server on port ${port}` });
  return {
    url,
    async stop() {
      process.off('exit', abandon);
      const gone = once(server, 'exit');
      if (server.exitCode === null && server.kill('SIGKILL')) await gone;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function isReady(url: string): Promise<boolean> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.ping()) === 'PONG';
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}
