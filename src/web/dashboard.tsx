import formbody from '@fastify/formbody';
import { DrizzleQueryError } from 'drizzle-orm';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { render } from 'preact-render-to-string';
import { messageOf, PipelineError, usageError } from '../core/errors.ts';
import { EXCHANGE_CODES } from '../core/exchanges.ts';
import { momentText, sentenceCase } from '../core/wording.ts';
import type { QueueContext } from '../jobs/context.ts';
import { decideEvent, ratioOfFactor } from '../jobs/events/decide-event.ts';
import { planReplay } from '../jobs/replay/plan-replay.ts';
import { workReplay } from '../jobs/replay/work-replay.ts';
import { canBeRequested, gapRequest, readGaps } from '../jobs/runs/read-gaps.ts';
import { cancelRun, resumeRun, startRun } from '../jobs/runs/run-control.ts';
import { DEFAULT_TIMEOUTS, openDatabase } from '../load/database/database.ts';
import { databaseError } from '../load/database/database-errors.ts';
import { openRunsProgress, readRunSummary } from '../load/state/runs/reports.ts';
import { operations } from '../operations/registry.ts';
import { type Access, guard } from './access.ts';
import { ASSETS } from './assets.ts';
import { ofDemo } from './commands.ts';
import { Heading, type Page, type PageContext, type Requested } from './page.tsx';
import { coveragePage, dataSetPage } from './pages/coverage-page.tsx';
import { dataPage, relationPage } from './pages/data-page.tsx';
import { dayPage } from './pages/day.tsx';
import { issuesPage } from './pages/issues-page.tsx';
import { runIdOf } from './pages/path-values.ts';
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
const PAGES: Readonly<Record<string, (context: PageContext, requested: Requested) => Promise<Page>>> = {
  '/': statusPage,
  '/coverage': coveragePage,
  '/coverage/:operation/:exchange': dataSetPage,
  '/coverage/:operation/:exchange/:day': dayPage,
  '/runs': runsPage,
  '/runs/:id': runPage,
  '/issues': issuesPage,
  '/data': dataPage,
  '/data/:name': relationPage,
};

/** The sentence that the next page shows after an action. The address of the page names it. */
const NOTICES = {
  resumed: (run: string) => `Run ${run} is resumed.`,
  cancelled: (run: string) => `Run ${run} is cancelled; what it has loaded stays.`,
  filling: (run: string) => `Run ${run} requests what is missing.`,
  complete: () => 'Nothing is missing: no run was started.',
  retrying: (run: string) => `Run ${run} is reading the rejected records again.`,
  accepted: () => 'There is no reject that can be read again: no run was started.',
  decided: () => 'The decision is stored, and adjusted prices use it.',
} as const;

interface Done {
  readonly notice: keyof typeof NOTICES;
  readonly runId?: number;
}

type Fields = Readonly<Record<string, unknown>>;

interface Pressed {
  readonly params: Readonly<Record<string, string>>;
  readonly fields: Fields;
  /** The user who did it, as stored with runs and decisions. */
  readonly by: string;
}

const NAVIGATION = [
  { path: '/', name: 'Status' },
  { path: '/coverage', name: 'Coverage' },
  { path: '/runs', name: 'Runs' },
  { path: '/issues', name: 'Issues' },
  { path: '/data', name: 'Data' },
] as const;

/**
 * Serves the pages and, with EOD_WEB_ACTIONS, the actions of their buttons. Commands that are shown work on the demo's
 * data if the pages are about them.
 */
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
    const access = await guard(scope, context.config, context.log);
    for (const { url, type, body } of Object.values(ASSETS)) {
      scope.get(url, (_, reply) => reply.header('cache-control', KEEP_ASSETS).type(type).send(body));
    }
    // First, because it sets the error handler, which is also used by what is served after it.
    servePages(scope, reader, access, isDemo);
    if (context.config.EOD_WEB_ACTIONS) {
      await serveActions(scope, context, access);
    }
  });
}

function servePages(scope: FastifyInstance, context: QueueContext, access: Access, isDemo: boolean): void {
  const sendPage = ({ url }: FastifyRequest, reply: FastifyReply, page: Page) => {
    const html = documentOf(page, url, context);
    return reply
      .code(page.status ?? 200)
      .type('text/html; charset=utf-8')
      .send(isDemo ? ofDemo(html) : html);
  };
  for (const [path, makePage] of Object.entries(PAGES)) {
    scope.get(path, async (request, reply) => {
      const pageContext: PageContext = { ...context, token: access.tokenFor(request, reply) };
      const requested = {
        params: request.params as Readonly<Record<string, string>>,
        query: new URLSearchParams(request.url.split('?').slice(1).join('?')),
      };
      return sendPage(request, reply, await makePage(pageContext, requested));
    });
  }
  scope.setNotFoundHandler((request, reply) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return reply.code(405).header('allow', 'GET, HEAD').send({ error: 'GET only' });
    }
    return sendPage(request, reply, problemPage(404, 'There is no such page.'));
  });
  scope.setErrorHandler((error, request, reply) => {
    const problem = problemOf(error, request.method === 'POST' ? 409 : 404);
    if (problem.status >= 500)
      context.log.error({ err: error, path: request.url }, 'dashboard: a page failed');
    return sendPage(request, reply, problemPage(problem.status, problem.text));
  });
}

/**
 * The status and text that an error is given. Details of unexpected errors may contain hosts and users, so they
 * only go to the log.
 */
function problemOf(thrown: unknown, usageStatus: number): { readonly status: number; readonly text: string } {
  const error = thrown instanceof DrizzleQueryError ? databaseError(thrown) : thrown;
  if (error instanceof PipelineError && error.kind === 'usage') {
    return { status: usageStatus, text: `${sentenceCase(error.message)}.` };
  }
  if (error instanceof PipelineError && error.kind === 'database_unreachable') {
    return { status: 503, text: 'The database does not respond. The page works again as soon as it does.' };
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
          <a href="/">Status</a>
        </p>
      </>
    ),
  };
}

/** The sentence that an address names, such as `?done=resumed-3`; null if it names none. */
function noticeOf(url: string): string | null {
  const [, name = '', run = ''] = /[?&]done=([a-z]+)(?:-(\d{1,15}))?(?:&|$)/.exec(url) ?? [];
  return name in NOTICES ? NOTICES[name as keyof typeof NOTICES](run) : null;
}

/**
 * Serves the actions of the buttons with the functions that commands use. They start work and leave it to the workers,
 * except for rejects, whose kept responses this process reads itself. Who did what is logged.
 */
async function serveActions(scope: FastifyInstance, context: QueueContext, access: Access): Promise<void> {
  await scope.register(formbody);
  const stopping = new AbortController();
  const replays = new Set<Promise<void>>();
  scope.addHook('onClose', async () => {
    stopping.abort();
    await Promise.all(replays);
  });
  const replay = (runId: number) => {
    const work = workReplay(context, runId, stopping.signal)
      .catch((error) => context.log.error({ runId, err: error }, 'dashboard: the replay stopped'))
      .finally(() => replays.delete(work));
    replays.add(work);
  };

  const actions: Readonly<Record<string, (pressed: Pressed) => Promise<Done>>> = {
    '/actions/runs/:id/resume': async ({ params }) => {
      const runId = runIdOf({ params });
      const run = await readRunSummary(context.db.drizzle, runId);
      if (run !== null && (run.kind === 'import' || run.kind === 'replay')) {
        throw usageError(`run ${runId} is of kind ${run.kind}: continue it with the command that started it`);
      }
      await resumeRun(context, runId);
      return { notice: 'resumed', runId };
    },
    '/actions/runs/:id/cancel': async ({ params }) => {
      const runId = runIdOf({ params });
      await cancelRun(context, runId);
      return { notice: 'cancelled', runId };
    },
    '/actions/fill-gaps': async ({ fields, by }) => {
      const filling = (await openRunsProgress(context.db.drizzle)).find(({ kind }) => kind === 'gap_fill');
      if (filling !== undefined)
        throw usageError(`run ${filling.runId} is already requesting what is missing`);
      const { operation, exchange } = fields;
      if (operation !== undefined && !operations.some(({ name }) => name === operation)) {
        throw usageError('there is no such operation');
      }
      if (exchange !== undefined && !EXCHANGE_CODES.some((name) => name === exchange)) {
        throw usageError(`exchanges are ${EXCHANGE_CODES.join(', ')}`);
      }
      const found = await readGaps(context, {
        ...(operation === undefined
          ? {}
          : { operations: operations.filter(({ name }) => name === operation) }),
        ...(typeof exchange === 'string' ? { exchanges: [exchange] } : {}),
      });
      const gaps = found.gaps.filter(canBeRequested);
      if (gaps.length === 0) return { notice: 'complete' };
      const runId = await startRun(context, gapRequest(gaps), { requestedBy: by });
      return runId === null ? { notice: 'complete' } : { notice: 'filling', runId };
    },
    '/actions/retry-rejects': async ({ by }) => {
      const runId = await planReplay(context, {}, { rejectsOnly: true, requestedBy: by });
      if (runId === null) return { notice: 'accepted' };
      replay(runId);
      return { notice: 'retrying', runId };
    },
    '/actions/events': async ({ fields, by }) => {
      const { event, decision, factor } = fields;
      const ratio = decision === 'ignore' ? null : ratioOfFactor(String(factor ?? ''));
      if (decision !== 'ignore' && ratio === null) {
        throw usageError(
          `"${String(factor ?? '')}" is not two whole numbers above 0, such as 1:2, which halves prices`,
        );
      }
      const id = String(event ?? '');
      // Postgres cannot store a NUL in a text.
      const decided = id.includes('\0') ? null : await decideEvent(context, id, ratio, by);
      if (decided === null) throw usageError(`there is no event ${id.replace(/\p{Cc}/gu, '')}`);
      return { notice: 'decided' };
    },
  };

  for (const [path, act] of Object.entries(actions)) {
    scope.post(path, async (request, reply) => {
      const fields = Object(request.body) as Fields;
      const visitor = access.visitorOf(request);
      const facts = { ...visitor, action: request.url, ...withoutToken(fields) };
      const refusal = access.refusalOf(request, fields.token);
      if (refusal !== null) {
        context.log.warn({ ...facts, refusal }, 'dashboard: refused an action');
        return reply.code(403).type('text/plain; charset=utf-8').send(`${refusal}\n`);
      }
      const params = request.params as Readonly<Record<string, string>>;
      try {
        const done = await act({ params, fields, by: nameOf(visitor) });
        // A warning, because that is logged by default: who did what may be needed later.
        context.log.warn({ ...facts, ...done }, 'dashboard: action completed');
        return redirectBack(request, reply, done);
      } catch (error) {
        context.log.warn({ ...facts, why: messageOf(error) }, 'dashboard: action failed');
        throw error;
      }
    });
  }
}

const nameOf = ({ user, address }: ReturnType<Access['visitorOf']>) => `${user}@${address} (dashboard)`;

function withoutToken({ token: _, ...fields }: Fields): Fields {
  return fields;
}

/** Redirects to the page of the button, if it is one of ours. */
function redirectBack(request: FastifyRequest, reply: FastifyReply, { notice, runId }: Done): FastifyReply {
  const from = request.headers.referer ?? '';
  const url = URL.canParse(from) ? new URL(from) : null;
  const path = url === null || url.host !== request.headers.host ? '/' : url.pathname;
  const done = runId === undefined ? notice : `${notice}-${runId}`;
  return reply.redirect(`${path.startsWith('//') ? '/' : path}?done=${done}`, 303);
}

/** Renders the page of an address as a document. All text is escaped, and nothing comes from another host. */
function documentOf({ title, main, refreshS }: Page, url: string, { clock, config }: QueueContext): string {
  const notice = noticeOf(url);
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
          {notice === null ? null : (
            <p class="notice" role="status">
              {notice}
            </p>
          )}
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
