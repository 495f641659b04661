import { connect, createServer, type Socket } from 'node:net';

/** A proxy between a command and Postgres (or Redis) that can lose the response to a statement, or all of them. */
export interface CuttingProxy {
  /** The same database, through the proxy. */
  readonly url: string;
  /** True if the response was lost already. */
  struck(): boolean;
  /** Breaks all connections and accepts no other while the server is to seem unreachable. */
  setAway(away: boolean): void;
  /** From now on connections stay open and are accepted, and nothing that either side sends arrives. */
  setSilent(): void;
  /** Connections that were not accepted meanwhile. */
  refused(): number;
  close(): Promise<void>;
}

/** Matches no text. */
const NEVER = /(?!)/;

/**
 * Forwards everything, but once: on the first connection that sends what matches `statement` and
 * then, in the same or a later message, `last`, the server receives it and responds, and the connection
 * breaks before the client receives the response. So the client cannot know whether it was done. A number as
 * `last` means so many messages, of any connection, after the first that matches `statement`.
 */
export async function startCuttingProxy(
  target: string,
  { statement, last }: { readonly statement: RegExp; readonly last: RegExp | number } = {
    statement: NEVER,
    last: NEVER,
  },
): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isStruck = false;
  let isAway = false;
  let isSilent = false;
  let refused = 0;
  let sent = -1;
  const server = createServer((client) => {
    if (isAway) {
      refused += 1;
      return client.destroy();
    }
    const upstream = connect({ host: hostname, port: Number(port) });
    let isMatched = false;
    let armed = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      // Whichever side breaks off, the other one is to see the connection broken too.
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (data) => {
      if (isSilent) return;
      const text = data.toString('latin1');
      isMatched ||= statement.test(text);
      if (sent >= 0 || isMatched) sent += 1;
      armed ||= !isStruck && (typeof last === 'number' ? sent === last : isMatched && last.test(text));
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (isSilent) return;
      if (armed && !isStruck) {
        isStruck = true;
        client.destroy();
      } else client.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const url = new URL(target);
  url.port = String(typeof address === 'object' && address !== null ? address.port : 0);
  return {
    url: url.href,
    struck: () => isStruck,
    refused: () => refused,
    setAway(away) {
      isAway = away;
      if (away) for (const socket of sockets) socket.destroy();
    },
    setSilent() {
      isSilent = true;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
