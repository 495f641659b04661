import { DrizzleQueryError } from 'drizzle-orm';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { render } from 'preact-render-to-string';
import { isPipelineError, messageOf, readMember } from '../core/errors.ts';
import { momentText, sentenceCase } from '../core/wording.ts';
import type { QueueContext } from '../jobs/context.ts';
import { DEFAULT_TIMEOUTS, openDatabase } from '../postgres/database.ts';
import { databaseError } from '../postgres/database-errors.ts';
import { guard } from './access.ts';
import { ASSETS } from './assets.ts';
import { withDemoFlags } from './commands.ts';
import { Heading, type Page, type Requested } from './page.tsx';
import { coveragePage, dataSetPage } from './pages/coverage-page.tsx';
import { dayPage } from './pages/day.tsx';
import { issuesPage } from './pages/issues-page.tsx';
import { runPage, runsPage } from './pages/runs-page.tsx';
import { statusPage } from './pages/status-page.tsx';

/** Pages have their own connections, so that they take none from the workers, and these time limits. */
const CONNECTIONS = 3;
const STATEMENT_WITHIN_MS = 15_000;
const LOCK_WITHIN_MS = 5_000;
const CONNECT_WITHIN_MS = 5_000;

/** One year: the address of an asset changes with its content. */
const KEEP_ASSETS = 'public, max-age=31536000, immutable';

/** All pages by their addresses. */
const PAGES: Readonly<Record<string, (context: QueueContext, requested: Requested) => Promise<Page>>> = {
  '/': statusPage,
  '/coverage': coveragePage,
  '/coverage/:operation/:exchange': dataSetPage,
  '/coverage/:operation/:exchange/:day': dayPage,
  '/runs': runsPage,
  '/runs/:id': runPage,
  '/issues': issuesPage,
};

const NAVIGATION = [
  { path: '/', name: 'Status' },
  { path: '/coverage', name: 'Coverage' },
  { path: '/runs', name: 'Runs' },
  { path: '/issues', name: 'Issues' },
] as const;

/** Serves the pages, which only read. The commands that they show have --demo if the pages are about the demo's data. */
export async function serveDashboard(
  app: FastifyInstance,
  context: QueueContext,
  isDemo: boolean,
): Promise<void> {
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
    await guard(scope, context.config, context.log);
    for (const { url, type, body } of Object.values(ASSETS)) {
      scope.get(url, (_, reply) => reply.header('cache-control', KEEP_ASSETS).type(type).send(body));
    }
    servePages(scope, reader, isDemo);
  });
}

function servePages(scope: FastifyInstance, context: QueueContext, isDemo: boolean): void {
  const sendPage = ({ url }: FastifyRequest, reply: FastifyReply, page: Page) => {
    const html = renderDocument(page, url, context);
    return reply
      .code(page.status ?? 200)
      .type('text/html; charset=utf-8')
      .send(isDemo ? withDemoFlags(html) : html);
  };
  for (const [path, makePage] of Object.entries(PAGES)) {
    scope.get(path, async (request, reply) => {
      const requested = {
        params: request.params as Readonly<Record<string, string>>,
        query: new URLSearchParams(request.url.split('?').slice(1).join('?')),
      };
      return sendPage(request, reply, await makePage(context, requested));
    });
  }
  scope.setNotFoundHandler((request, reply) =>
    sendPage(request, reply, problemPage(404, 'There is no such page.')),
  );
  scope.setErrorHandler((error, request, reply) => {
    const problem = describeProblem(error);
    if (problem.status >= 500)
      context.log.error({ err: error, path: request.url }, 'dashboard: a page failed');
    return sendPage(request, reply, problemPage(problem.status, problem.text));
  });
}

/**
 * The status and text that an error is given. Details of unexpected errors may contain hosts and users, so they
 * only go to the log.
 */
function describeProblem(thrown: unknown): { readonly status: number; readonly text: string } {
  const error = thrown instanceof DrizzleQueryError ? databaseError(thrown) : thrown;
  if (isPipelineError(error, 'usage')) {
    return { status: 404, text: `${sentenceCase(error.message)}.` };
  }
  if (isPipelineError(error, 'database_unreachable')) {
    return { status: 503, text: 'The database does not respond. The page works again as soon as it does.' };
  }
  const statusCode = readMember(error, 'statusCode');
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
        <Heading title={status === 404 ? 'Not found' : 'Something went wrong'}>{text}</Heading>
        <p>
          <a href="/">Status</a>
        </p>
      </>
    ),
  };
}

/** Renders the page of an address as a document. All text is escaped, and nothing comes from another host. */
function renderDocument(
  { title, main, refreshS }: Page,
  url: string,
  { clock, config }: QueueContext,
): string {
  const html = render(
    <html lang="en" data-refresh={refreshS}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · eod`}</title>
        <link rel="icon" href={ASSETS.icon.url} type="image/svg+xml" />
        <link rel="stylesheet" href={ASSETS.style.url} />
        <script src={ASSETS.script.url} defer />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header class="top">
          <a class="brand" href="/">
            <img src={ASSETS.icon.url} alt="" width="24" height="24" />
            eod
          </a>
          <nav aria-label="Pages">
            <ul>
              {NAVIGATION.map(({ path, name }) => (
                <li key={path}>
                  <a href={path} aria-current={isAt(url.split('?')[0] ?? '/', path) ? 'page' : undefined}>
                    {name}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </header>
        <main id="main" tabIndex={-1}>
          {main}
          <p class="made">
            As of{' '}
            <span data-made="">{momentText(new Date(clock.now()).toISOString(), config.EOD_TIMEZONE)}</span>,
            times in {config.EOD_TIMEZONE}
          </p>
        </main>
      </body>
    </html>,
  );
  return `<!doctype html>${html}`;
}

const isAt = (path: string, of: string) =>
  of === '/' ? path === '/' : path === of || path.startsWith(`${of}/`);
