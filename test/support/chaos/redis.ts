import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../free-port.ts';
import { waitFor } from '../wait-for.ts';
import { type Program, startProgram } from './process.ts';

/** A Redis that comes back under the same address, and empty. */
export interface RestartableRedis {
  readonly url: string;
  /** Killed and started anew: nothing is saved. */
  restart(): Promise<void>;
  /** The two halves of a restart. */
  halt(): Promise<void>;
  start(): Promise<void>;
  /** Cuts every connection. @returns how many. */
  cutConnections(): Promise<number>;
  stop(): Promise<void>;
}

export async function startRestartableRedis(home: string): Promise<RestartableRedis> {
  const dir = join(home, 'redis');
  mkdirSync(dir);
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const settings = { port, bind: '127.0.0.1', dir, save: '', appendonly: 'no' };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);

  async function start(): Promise<Program> {
    const server = startProgram('redis-server', [...args, '--maxmemory-policy', 'noeviction'], {
      name: 'redis',
      logFile: join(home, 'redis.log'),
    });
    await waitFor(() => ask(url, 'PING'), { what: 'Redis' });
    return server;
  }

  let server = await start();
  const halt = async () => {
    server.kill('SIGKILL');
    await server.ended;
  };
  return {
    url,
    async restart() {
      await halt();
      server = await start();
    },
    halt,
    async start() {
      server = await start();
    },
    async cutConnections() {
      return Number(await ask(url, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'));
    },
    stop: halt,
  };
}

async function ask(url: string, command: string, ...args: string[]): Promise<unknown> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await client.call(command, ...args);
  } finally {
    client.disconnect();
  }
}
