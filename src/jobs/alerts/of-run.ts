import { epochOf } from '../../core/days.ts';
import { exchangesWithoutData } from '../../load/state/coverage.ts';
import type { EndedRun } from '../../load/state/runs.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { type Gap, readGaps } from '../runs/gaps.ts';
import { keyHash } from '../worker/quota.ts';
import { type Alert, keyAlert } from './alerts.ts';

/** At most this many items are told in one message; the facts hold them all. */
const TOLD = 5;

/** What somebody should know of a run that has ended. */
export async function alertsOfRun(context: Context, run: EndedRun): Promise<Alert[]> {
  if (run.kind === 'preview') return [];
  const key = await stoppedByKey(context, run);
  const alerts = [key, await failure(context, run, key), await suspicion(context, run)];
  if (run.kind === 'nightly') alerts.push(await lateness(context, run));
  // What is missing because of the key needs the key, and not to be asked for.
  if (run.kind === 'nightly' && key === null) alerts.push(await gaps(context, run));
  return alerts.filter((alert) => alert !== null);
}

/** Windows this key was refused for, by the line that was kept with the key. */
const BY_KEY = `w.state = 'blocked' and exists (
  select from etl.access_keys k where k.key_hash = $2 and k.diagnostic = coalesce(w.diagnostic, w.error))`;

/** A run the key has stopped tells of the key: whoever is called needs to hear that once, and no more. */
async function stoppedByKey({ db, config }: Context, run: EndedRun): Promise<Alert | null> {
  if (run.state !== 'failed') return null;
  const hash = keyHash(config.EOD_ACCESS_KEY ?? '');
  const { rows } = await db.pool.query<{ line: string }>(
    `select coalesce(w.diagnostic, w.error) as line from etl.windows w where w.run_id = $1 and ${BY_KEY} limit 1`,
    [run.id, hash],
  );
  const [window] = rows;
  return window === undefined ? null : keyAlert(hash, window.line);
}

/** @param key the alert of the key, where that has stopped the run: its windows are not told again. */
async function failure({ db }: Context, run: EndedRun, key: Alert | null): Promise<Alert | null> {
  if (run.state !== 'failed') return null;
  const { rows } = await db.pool.query<{ what: string; windows: number; reason: string | null }>(
    `select operation || ' ' || exchange as what, count(*)::int as windows,
            (array_agg(coalesce(diagnostic, error) order by id desc))[1] as reason
       from etl.windows w where run_id = $1 and state in ('failed', 'blocked') and not (${BY_KEY})
      group by 1 order by 1`,
    [run.id, key?.subject ?? ''],
  );
  if (key !== null && rows.length === 0) return null;
  return {
    kind: 'run_failed',
    subject: `${run.kind}: ${rows.map(({ what }) => what).join(', ')}`,
    message: `run ${run.id} (${run.kind}, ${run.from} to ${run.to}) failed: ${told(rows.map(({ what, windows, reason }) => `${what} (${windows}: ${reason})`))}`,
    facts: { run: run.id, runKind: run.kind, from: run.from, to: run.to, failed: rows },
  };
}

async function suspicion({ db }: Context, run: EndedRun): Promise<Alert | null> {
  const { rows } = await db.pool.query<{ what: string; window: number; suspicious: string }>(
    `select format('%s %s %s', operation, exchange, from_date) as what, id::int as window, suspicious
       from etl.windows where run_id = $1 and suspicious is not null order by id`,
    [run.id],
  );
  if (rows.length === 0) return null;
  return {
    kind: 'suspicious',
    subject: rows.map(({ what }) => what).join(', '),
    message: `run ${run.id} took nothing away although rows are missing: ${told(rows.map(({ what, suspicious }) => `${what}: ${suspicious}`))}`,
    facts: { run: run.id, windows: rows },
  };
}

/** The night is over, and the exchange's bhav copy of the day is not there. */
async function lateness({ db, config, clock, calendar }: Context, run: EndedRun): Promise<Alert | null> {
  const [hours = 0, minutes = 0] = config.EOD_PUBLISHED_AT.split(':').map(Number);
  const due = epochOf(run.to, hours * 3_600 + minutes * 60, config.EOD_TIMEZONE) * 1_000;
  if (clock.now() < due) return null;
  const asked = { runId: run.id, operation: 'GetBhavCopyCM', day: run.to };
  const late = (await exchangesWithoutData(db.drizzle, asked)).filter(
    (exchange) => calendar.sessions(exchange, run.to, run.to).length > 0,
  );
  if (late.length === 0) return null;
  return {
    kind: 'late_data',
    subject: `${late.join(', ')} ${run.to}`,
    message: `the bhav copy of ${run.to} is not there yet: ${late.join(', ')} (due ${config.EOD_PUBLISHED_AT} ${config.EOD_TIMEZONE})`,
    facts: { run: run.id, day: run.to, exchanges: late },
  };
}

/** Of the sessions the night has asked for, those that are still missing. */
async function gaps(context: Context, run: EndedRun): Promise<Alert | null> {
  const { rows: asked } = await context.db.pool.query<AskedRange>(
    `select t.operation, t.exchange, t."from", t."to"
       from etl.runs r, jsonb_to_recordset(r.request->'targets') as t(operation text, exchange text, "from" text, "to" text)
      where r.id = $1`,
    [run.id],
  );
  if (asked.length === 0) return null;
  const found = await readGaps(context, {
    operations: [...new Set(asked.map(({ operation }) => operation))].map(operationNamed),
    exchanges: [...new Set(asked.map(({ exchange }) => exchange))],
    ...{ from: run.from, to: run.to },
  });
  const missing = found.gaps.filter((gap) =>
    asked.some(
      ({ operation, exchange, from, to }) =>
        gap.operation === operation && gap.exchange === exchange && gap.from <= to && gap.to >= from,
    ),
  );
  if (missing.length === 0) return null;
  return {
    kind: 'gaps',
    subject: missing.map(gapName).join(', '),
    message: `sessions are missing after the night: ${told(missing.map(gapName))}; "eod fill-gaps" asks for them`,
    facts: { run: run.id, gaps: missing },
  };
}

type AskedRange = Pick<Gap, 'operation' | 'exchange' | 'from' | 'to'>;

const gapName = ({ operation, exchange, from, to, reason }: Gap) =>
  `${operation} ${exchange} ${from === to ? from : `${from} to ${to}`} (${reason})`;

function told(items: readonly string[]): string {
  const more = items.length - TOLD;
  return items.slice(0, TOLD).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
