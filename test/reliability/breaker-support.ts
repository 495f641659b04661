import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A door in front of a port that lets nobody in until it is opened. */
export async function door(port: number) {
  const sockets = new Set<Socket>();
  const state = { open: false, refused: 0 };
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (!state.open) {
      state.refused += 1;
      socket.resetAndDestroy();
      return;
    }
    const inner = connect(port, '127.0.0.1').on('error', () => undefined);
    for (const one of [socket, inner]) sockets.add(one);
    socket.pipe(inner).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  return { state, url };
}

export const FORTNIGHT = {
  operations: ['GetBhavCopyCM'],
  exchanges: ['NSE'],
  from: '2025-08-28',
  to: '2025-09-11',
};
