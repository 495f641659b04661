import { DrizzleQueryError } from 'drizzle-orm';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { messageOf, PipelineError } from '../core/errors.ts';
import { momentText } from '../core/wording.ts';
import type { QueueContext } from '../jobs/context.ts';
import { DEFAULT_TIMEOUTS, openDatabase } from '../load/database/database.ts';
import { databaseError } from '../load/database/database-errors.ts';
import { type Access, guard } from './access.ts';
import { noticeOf, serveActions } from './actions.ts';
import { ASSETS } from './assets.ts';
import { type Asked, documentOf, Heading, type Page, type PageContext } from './page.tsx';
import { coveragePage, dataSetPage } from './pages/coverage-page.tsx';
import { dayPage } from './pages/day.tsx';
import { dataSetDictionaryPage, dictionaryPage, viewPage } from './pages/dictionary.tsx';
import { qualityPage } from './pages/quality-page.tsx';
import { runPage, runsPage } from './pages/runs-page.tsx';
import { tonightPage } from './pages/tonight.tsx';
import { freshnessPage, rowsPage } from './pages/trends.tsx';
import { serveQueueBoard } from './queue-board.ts';

/** Pages have their own connections, so that they take none from the workers, and these time limits. */
const CONNECTIONS = 3;
const STATEMENT_WITHIN_MS = 15_000;
const LOCK_WITHIN_MS = 5_000;
const CONNECT_WITHIN_MS = 5_000;

/** One year: the address of an asset changes with its content. */
const KEEP_ASSETS = 'public, max-age=31536000, immutable';

/** All pages by their addresses. */
const PAGES: Readonly<Record<string, (context: PageContext, asked: Asked) => Promise<Page>>> = {
  '/': tonightPage,
  '/coverage': coveragePage,
  '/coverage/:operation/:exchange': dataSetPage,
  '/coverage/:operation/:exchange/:day': dayPage,
  '/runs': runsPage,
  '/runs/:id': runPage,
  '/quality': qualityPage,
  '/freshness': freshnessPage,
  '/rows': rowsPage,
  '/dictionary': dictionaryPage,
  '/dictionary/:name': dataSetDictionaryPage,
  '/dictionary/views/:name': viewPage,
};

/** Serves the pages and, with EOD_WEB_ACTIONS, the actions of their buttons. */
export async function serveDashboard(app: FastifyInstance, context: QueueContext): Promise<void> {
  const reading = openDatabase({
    url: context.db.url,
    connections: CONNECTIONS,
    log: context.log,
    timeouts: { ...DEFAULT_TIMEOUTS, statementMs: STATEMENT_WITHIN_MS, lockMs: LOCK_WITHIN_MS },
    connectWithinMs: CONNECT_WITHIN_MS,
  });
  app.addHook('onClose', () => reading.close());
  const reader: QueueContext = { ...context, db: reading };
  await app.register(async (scope) => {
    const access = await guard(scope, context.config, context.log);
    for (const { url, type, body } of Object.values(ASSETS)) {
      scope.get(url, (_, reply) => reply.header('cache-control', KEEP_ASSETS).type(type).send(body));
    }
    // First, because it sets the error handler, which is also used by what is served after it.
    servePages(scope, reader, access);
    if (context.config.EOD_WEB_ACTIONS) {
      await serveActions(scope, context, access);
    }
    await serveQueueBoard(scope, context);
  });
}

function servePages(scope: FastifyInstance, context: QueueContext, access: Access): void {
  const answer = (request: FastifyRequest, reply: FastifyReply, page: Page) => {
    const frame = {
      path: request.url.split('?')[0] ?? '/',
      config: context.config,
      at: momentText(new Date(context.clock.now()).toISOString(), context.config.EOD_TIMEZONE),
      notice: noticeOf(request.url),
    };
    return reply
      .code(page.status ?? 200)
      .type('text/html; charset=utf-8')
      .send(documentOf(page, frame));
  };
  for (const [path, makePage] of Object.entries(PAGES)) {
    scope.get(path, async (request, reply) => {
      const pageContext: PageContext = { ...context, token: access.tokenFor(request, reply) };
      const asked = {
        params: request.params as Readonly<Record<string, string>>,
        query: new URLSearchParams(request.url.split('?').slice(1).join('?')),
      };
      return answer(request, reply, await makePage(pageContext, asked));
    });
  }
  scope.setNotFoundHandler((request, reply) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return reply.code(405).header('allow', 'GET, HEAD').send({ error: 'GET only' });
    }
    return answer(request, reply, problemPage(404, 'There is no such page.'));
  });
  scope.setErrorHandler((error, request, reply) => {
    const problem = problemOf(error, request.method === 'POST' ? 409 : 404);
    if (problem.status >= 500)
      context.log.error({ err: error, path: request.url }, 'dashboard: a page failed');
    return answer(request, reply, problemPage(problem.status, problem.text));
  });
}

/**
 * The status and text that an error is answered with. Details of unexpected errors may contain hosts and users, so they
 * only go to the log.
 */
function problemOf(thrown: unknown, usageStatus: number): { readonly status: number; readonly text: string } {
  const error = thrown instanceof DrizzleQueryError ? databaseError(thrown) : thrown;
  if (error instanceof PipelineError && error.kind === 'usage') {
    const { message } = error;
    return { status: usageStatus, text: `${message.charAt(0).toUpperCase()}${message.slice(1)}.` };
  }
  if (error instanceof PipelineError && error.kind === 'database_away') {
    return { status: 503, text: 'The database does not answer. The page works again as soon as it does.' };
  }
  const { statusCode } = Object(error) as { readonly statusCode?: unknown };
  if (typeof statusCode === 'number' && statusCode < 500)
    return { status: statusCode, text: messageOf(error) };
  return { status: 500, text: 'This page could not be shown. The log of this process says why.' };
}

function problemPage(status: number, text: string): Page {
  return {
    status,
    title: text,
    main: (
      <>
        <Heading
          title={
            status === 404 ? 'Not found' : status === 409 ? 'That cannot be done' : 'Something went wrong'
          }
        >
          {text}
        </Heading>
        <p>
          <a href="/">Tonight</a>
        </p>
      </>
    ),
  };
}
