import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type { FastifyInstance } from 'fastify';
import { within } from '../core/waits.ts';
import type { QueueContext } from '../jobs/context.ts';
import { ASSETS } from './assets.ts';

const PATH = '/queues';

/** Time limit of a request of the board. */
const RESPONSE_WITHIN_MS = 10_000;

/** Bull Board sets styles by script and has a `<base>`; the rest is as on the other pages. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self' 'unsafe-inline'",
  "font-src 'self'",
  "img-src 'self' data:",
  "script-src 'self'",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'self'",
].join('; ');

/** Bull Board's page loads a font from another host; browsers have a substitute. */
const FOREIGN_LINK = /<link\b[^>]*\bhref="https?:[^>]*>\s*/g;

/**
 * What Bull Board's page lacks: contrast of small texts, a heading, names of buttons, and something to read without
 * JavaScript. With it axe finds nothing there.
 */
const ADDITIONS = `
<style>
:root { --primary: #0b574e; --muted-foreground: #4f5a64; --hl-meta: #4f5a64; --destructive: #b42318; --status-failed: #b42318 }
body.dark-mode { --muted-foreground: #a3aebc; --destructive: #f08a84; --status-failed: #f98080 }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
</style>
<section class="unseen" aria-labelledby="heading"><h1 id="heading">Queues</h1></section>
<noscript><p>This page shows the jobs of BullMQ and needs JavaScript. <a href="/runs">Runs</a> shows without it what is
done and what waits.</p></noscript>
<script defer src="${ASSETS.board.url}"></script>
`;

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
};

type ServerAdapter = Parameters<typeof createBullBoard>[0]['serverAdapter'];
type Given<Setter extends keyof ServerAdapter> = Parameters<ServerAdapter[Setter]>;

/** What Bull Board passes to its server adapter. */
interface Board {
  queues: Given<'setQueues'>[0];
  views: string;
  statics: string;
  entry: Given<'setEntryRoute'>[0];
  api: Given<'setApiRoutes'>[0];
  uiConfig: Given<'setUIConfig'>[0];
  onError: Given<'setErrorHandler'>[0];
}

function boardOf({ queues }: QueueContext): Board {
  const board: Partial<Board> = {};
  const adapter: ServerAdapter = {
    setQueues: (given) => set({ queues: given }),
    setViewsPath: (views) => set({ views }),
    setStaticPath: (_, statics) => set({ statics }),
    setEntryRoute: (entry) => set({ entry }),
    setErrorHandler: (onError) => set({ onError }),
    setApiRoutes: (api) => set({ api }),
    setUIConfig: (uiConfig) => set({ uiConfig }),
  };
  const set = (given: Partial<Board>) => {
    Object.assign(board, given);
    return adapter;
  };
  createBullBoard({
    queues: queues.bullQueues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Queues',
        miscLinks: [{ text: 'Dashboard', url: '/' }],
        hideDocsLink: true,
        // About Redis only.
        hideRedisDetails: true,
        // The status says how many workers there are.
        showWorkers: false,
      },
    },
  });
  return board as Board;
}

/**
 * Serves the jobs of the queues, on Redis or Postgres, at `/queues`. It is read-only: only GET requests of the board's
 * API are served.
 */
export async function serveQueueBoard(scope: FastifyInstance, context: QueueContext): Promise<void> {
  const board = boardOf(context);
  await scope.register(
    async (pages) => {
      pages.addHook('onRequest', async (_, reply) => {
        reply.header('content-security-policy', POLICY);
      });
      servePage(pages, board);
      serveFiles(pages, board.statics);
      serveApi(pages, board);
    },
    { prefix: PATH },
  );
}

function servePage(pages: FastifyInstance, { entry, views, uiConfig }: Board): void {
  const { name, params } = entry.handler({ basePath: PATH, uiConfig });
  const template = readFileSync(join(views, name), 'utf8');
  const page = template
    .replace(/<%[=-] (\w+) %>/g, (_, variable: string) => params[variable] ?? '')
    .replace(FOREIGN_LINK, '')
    .replace(/<body\b[^>]*>/, (body) => `${body}${ADDITIONS}`);
  for (const path of [entry.route].flat()) {
    pages.get(path, (_, reply) => reply.type('text/html; charset=utf-8').send(page));
  }
}

/**
 * Serves the board's scripts and styles. They are listed once at the start, so that no address can reach another file.
 */
function serveFiles(pages: FastifyInstance, folder: string): void {
  const files = new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => extname(name) in TYPES)
      .map((name) => [name.split(sep).join('/'), join(folder, name)]),
  );
  pages.get<{ Params: { '*': string } }>('/static/*', (request, reply) => {
    const file = files.get(request.params['*']);
    if (file === undefined) return reply.callNotFound();
    return reply.type(TYPES[extname(file)] ?? '').send(readFileSync(file));
  });
}

function serveApi(pages: FastifyInstance, { api, queues, uiConfig, onError }: Board): void {
  for (const { method, route, handler } of api) {
    if (![method].flat().includes('get')) continue;
    for (const path of [route].flat()) {
      pages.get(path, async (request, reply) => {
        try {
          const requesting = handler({
            queues,
            uiConfig,
            params: request.params as Record<string, string>,
            query: request.query as Record<string, string>,
            body: {},
            headers: {},
          });
          // The client would wait for an unreachable Redis forever.
          const response = await within(Promise.resolve(requesting), RESPONSE_WITHIN_MS);
          return reply.code(response.status ?? 200).send(response.body);
        } catch (error) {
          const response = onError(error as Error);
          return reply.code(response.status ?? 500).send(response.body);
        }
      });
    }
  }
}
