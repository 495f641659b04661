import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { closeAfterTest } from './closing.ts';

/** A server of the test's own on loopback; closed after the test. @returns its address. */
export function startServer(listener: RequestListener, closeAfter = closeAfterTest): Promise<string> {
  return listen(createServer(listener), closeAfter);
}

/** Lets a server of HTTP or HTTPS listen on loopback. It is closed after the test, with its connections. @returns its address. */
export async function listen(server: Server | SecureServer, closeAfter = closeAfterTest): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closeAfter(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return `${server instanceof SecureServer ? 'https' : 'http'}://127.0.0.1:${port}`;
}
