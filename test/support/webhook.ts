import type { IncomingHttpHeaders } from 'node:http';
import { misnamedBooleans } from './boolean-names.ts';
import { startServer } from './http-server.ts';

export interface Alert {
  readonly kind: string;
  readonly subject: string;
  readonly text: string;
  readonly message: string;
  readonly facts: Record<string, unknown>;
}

export interface Webhook {
  /** With a secret in its path, as chat services have it. */
  readonly url: string;
  readonly alerts: Alert[];
  /** The requests that brought them. */
  readonly requests: { readonly headers: IncomingHttpHeaders; readonly body: string }[];
  /** Status of the responses from now on; null never responds. */
  status: number | null;
}

/** A server that takes alerts and remembers them; closed after the test. */
export async function startWebhook(): Promise<Webhook> {
  const url = await startServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    webhook.requests.push({ headers: request.headers, body });
    const alert: Alert = JSON.parse(body);
    webhook.alerts.push(alert);
    // Names of JSON are a contract.
    if (misnamedBooleans(alert).length > 0) response.writeHead(500).end(`${misnamedBooleans(alert)}`);
    else if (webhook.status !== null) response.writeHead(webhook.status).end('ok');
  });
  const webhook: Webhook = { url: `${url}/services/kiwi-0815`, alerts: [], requests: [], status: 200 };
  return webhook;
}
