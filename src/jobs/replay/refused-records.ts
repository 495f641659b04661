import { dayAt } from '../../core/days.ts';
import { readAnswer } from '../../extract/index.ts';
import type { Extracted } from '../../extract/types.ts';
import type { ReplayWindow } from '../../load/state/windows.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';

interface Refused {
  readonly position: number;
  readonly record: unknown;
  readonly problems: { path: string; message: string }[];
  readonly at: Date;
}

/** Stands in stored records where something was left out; see extract/sanitize.ts. */
const SHORTENED = '…';

/**
 * Reads open rejects of the window's parent again, from the records as they were stored, because
 * the answer is not kept. Those that were shortened for storing stay refused: what is missing
 * cannot be made up. So do those of tables that count places in an answer.
 */
export async function recordsOf(
  { db, config }: Context,
  window: ReplayWindow,
  settings: Parameters<typeof readAnswer>[3],
): Promise<{ extracted: Extracted; refusedAt: number }> {
  const found = await db.pool.query<Refused>(
    `select position, record, problems, rejected_at as at from etl.rejects
      where window_id = $1 and resolved_at is null order by position`,
    [window.parentId],
  );
  const operation = operationNamed(window.operation);
  const refusedAt = found.rows[0]?.at.getTime() ?? Date.now();
  const counts = operation.shapes.some(({ table }) =>
    table.fields.some((field) => field.from === 'derived' && field.value.length > 1),
  );
  const whole = (one: Refused) => !counts && !JSON.stringify(one.record).includes(SHORTENED);
  const readable = found.rows.filter(whole);
  const extracted = readAnswer(
    operation,
    { ...window, calledOn: dayAt(Math.floor(refusedAt / 1000), config.EOD_TIMEZONE) },
    { body: Buffer.from(JSON.stringify(readable.map((one) => one.record))), contentType: null, bytes: 0 },
    settings,
  );
  const rejects = [
    ...extracted.rejects.map((reject) => ({
      ...reject,
      position: readable[reject.position]?.position ?? reject.position,
    })),
    ...found.rows
      .filter((one) => !whole(one))
      .map(({ position, record, problems }) => ({ position, record, problems })),
  ];
  return { extracted: { ...extracted, rejects, fetched: found.rows.length }, refusedAt };
}
