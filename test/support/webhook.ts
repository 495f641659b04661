import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { closeAfterTest } from './closing.ts';

export interface Heard {
  readonly kind: string;
  readonly subject: string;
  readonly text: string;
  readonly message: string;
  readonly facts: Record<string, unknown>;
}

export interface Webhook {
  /** With a secret in its path, as chat services have it. */
  readonly url: string;
  readonly heard: Heard[];
  /** The same as they came. */
  readonly requests: { readonly headers: IncomingHttpHeaders; readonly body: string }[];
  /** Status of the answers from now on; null never answers. */
  answers: number | null;
}

/** A server that takes alerts and remembers them; closed after the test. */
export async function startWebhook(): Promise<Webhook> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    webhook.requests.push({ headers: request.headers, body });
    webhook.heard.push(JSON.parse(body) as Heard);
    if (webhook.answers !== null) response.writeHead(webhook.answers).end('ok');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const webhook: Webhook = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/services/kiwi-0815`,
    heard: [],
    requests: [],
    answers: 200,
  };
  closeAfterTest(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });
  return webhook;
}
