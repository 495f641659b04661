import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { closeAfterTest } from './closing.ts';
import { listen } from './http-server.ts';

export interface Proxy {
  /** Without the password. */
  readonly url: string;
  /** What it was asked for: `CONNECT service.example:4532`, `GET http://service.example/…`. */
  readonly requests: string[];
}

interface ProxyOptions {
  /** `user:password`, without which it responds with 407. */
  readonly credentials?: string;
}

/**
 * A proxy as companies have it: the names of the hosts mean something to it alone. It refuses all others with 403.
 *
 * @param hosts addresses on loopback by host and port.
 */
export async function startProxy(
  hosts: Readonly<Record<string, string>>,
  { credentials }: ProxyOptions = {},
): Promise<Proxy> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const refusal = ({ headers }: IncomingMessage, host: string) => {
    const expected = `Basic ${Buffer.from(credentials ?? '').toString('base64')}`;
    if (credentials !== undefined && headers['proxy-authorization'] !== expected) return 407;
    return host in hosts ? null : 403;
  };
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const url = new URL(request.url ?? '', 'http://none');
    const host = `${url.hostname}:${url.port || 80}`;
    const status = refusal(request, host);
    if (status !== null) return void response.writeHead(status).end();
    const { method, headers } = request;
    const onward = httpRequest(new URL(url.pathname + url.search, hosts[host]), { method, headers });
    onward.on('response', (upstream) => {
      response.writeHead(upstream.statusCode ?? 502, upstream.headers);
      upstream.pipe(response);
    });
    request.pipe(onward);
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    requests.push(`CONNECT ${request.url}`);
    const host = request.url ?? '';
    const status = refusal(request, host);
    if (status !== null) return void socket.end(`HTTP/1.1 ${status} Refused\r\n\r\n`);
    const inner = connect(Number(new URL(hosts[host] ?? '').port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      socket.pipe(inner).pipe(socket);
    });
    for (const side of [socket, inner]) {
      sockets.add(side);
      side.on('error', () => undefined);
    }
  });
  closeAfterTest(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { url: await listen(server), requests };
}
