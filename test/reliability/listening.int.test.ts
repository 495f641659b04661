import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { serve } from '../support/serve.ts';
import { openSetup } from './support.ts';

/** An address of this machine that others can reach, where it has one. */
const outside = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

function reachable(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    onTestFinished(() => void socket.destroy());
  });
}

test('what we serve listens on loopback, and elsewhere only where it is configured to', async () => {
  if (outside === undefined) console.log('this machine has no address but loopback: only that one is tried');
  const setup = await openSetup();
  const health = await serve(setup);
  const open = { ...setup, config: { ...setup.config, EOD_HTTP_HOST: '0.0.0.0' } };
  const server = await serve(open);

  const portOf = ({ url }: { url: string }) => Number(new URL(url).port);
  for (const server of [health, setup.sandbox]) {
    expect(new URL(server.url).hostname).toBe('127.0.0.1');
    expect(await reachable('127.0.0.1', portOf(server))).toBe(true);
    if (outside !== undefined) expect(await reachable(outside, portOf(server))).toBe(false);
  }
  expect(await reachable(outside ?? '127.0.0.1', portOf(server))).toBe(true);
});
