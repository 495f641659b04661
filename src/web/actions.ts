import formbody from '@fastify/formbody';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { messageOf, usageError } from '../core/errors.ts';
import { EXCHANGE_CODES } from '../core/exchanges.ts';
import type { QueueContext } from '../jobs/context.ts';
import { decideEvent, ratioOfFactor } from '../jobs/events/decide-event.ts';
import { planReplay } from '../jobs/replay/plan-replay.ts';
import { workReplay } from '../jobs/replay/work-replay.ts';
import { gapRequest, readGaps } from '../jobs/runs/read-gaps.ts';
import { cancelRun, resumeRun, startRun } from '../jobs/runs/run-control.ts';
import { openRunsProgress, readRunSummary } from '../load/state/runs/reports.ts';
import { operations } from '../operations/registry.ts';
import type { Access, Visitor } from './access.ts';
import { runIdOf } from './pages/asked.ts';

/** The sentence that the next page shows after an action. The address of the page names it. */
const NOTICES = {
  resumed: (run: string) => `Run ${run} is resumed.`,
  cancelled: (run: string) => `Run ${run} is cancelled; what it has loaded stays.`,
  filling: (run: string) => `Run ${run} asks for what is missing.`,
  complete: () => 'Nothing is missing: no run was started.',
  retrying: (run: string) => `Run ${run} is reading the rejected records again.`,
  accepted: () => 'There is no reject that can be read again: no run was started.',
  decided: () => 'The decision is stored, and adjusted prices use it.',
} as const;

interface Done {
  readonly notice: keyof typeof NOTICES;
  readonly runId?: number;
}

/** The sentence that an address names, such as `?done=resumed-3`; null if it names none. */
export function noticeOf(url: string): string | null {
  const [, name = '', run = ''] = /[?&]done=([a-z]+)(?:-(\d{1,15}))?(?:&|$)/.exec(url) ?? [];
  return name in NOTICES ? NOTICES[name as keyof typeof NOTICES](run) : null;
}

type Fields = Readonly<Record<string, unknown>>;

interface Pressed {
  readonly params: Readonly<Record<string, string>>;
  readonly fields: Fields;
  /** Who did it, as stored with runs and decisions. */
  readonly by: string;
}

/**
 * Serves the actions of the buttons with the functions that commands use. They start work and leave it to the workers,
 * except for rejects, whose kept answers this process reads itself. Who did what is logged.
 */
export async function serveActions(
  scope: FastifyInstance,
  context: QueueContext,
  access: Access,
): Promise<void> {
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
        throw usageError(`run ${filling.runId} is already asking for what is missing`);
      const { operation, exchange } = fields;
      if (operation !== undefined && !operations.some(({ name }) => name === operation)) {
        throw usageError('there is no such operation');
      }
      if (exchange !== undefined && !EXCHANGE_CODES.some((name) => name === exchange)) {
        throw usageError(`exchanges are ${EXCHANGE_CODES.join(', ')}`);
      }
      const { gaps, total } = await readGaps(context, {
        ...(operation === undefined
          ? {}
          : { operations: operations.filter(({ name }) => name === operation) }),
        ...(typeof exchange === 'string' ? { exchanges: [exchange] } : {}),
      });
      if (total === 0) return { notice: 'complete' };
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
        context.log.warn({ ...facts, ...done }, 'dashboard: did what was asked');
        return redirectBack(request, reply, done);
      } catch (error) {
        context.log.warn({ ...facts, why: messageOf(error) }, 'dashboard: could not do what was asked');
        throw error;
      }
    });
  }
}

const nameOf = ({ user, address }: Visitor) => `${user}@${address} (dashboard)`;

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
