import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { readToFold } from '../../src/jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../src/load/market/accept-withdrawal.ts';
import { prune } from '../../src/load/state/responses/responses.ts';
import { tableGroupOf } from '../../src/operations/registry.ts';
import { openStore } from '../jobs/import-support.ts';
import { replay } from '../jobs/replay-support.ts';
import { forAllAsync, setsOf } from '../support/for-all.ts';
import { isSlowLayer } from '../support/layer.ts';
import { stepsOf } from './any-order/draw.ts';
import { MAX_REJECT_SHARE } from './any-order/model.ts';
import { CALLS, kindOf, positionsOf, type Response } from './any-order/responses.ts';
import { load, type Position } from './any-order/run.ts';
import { newRun } from './support.ts';

/** Sets that are tried. */
const RUNS = 2;

async function openPosition(): Promise<Omit<Position, 'exchange'>> {
  const context = await openStore(undefined, { EOD_MAX_REJECT_SHARE: String(MAX_REJECT_SHARE) });
  return { context, runId: await newRun(context.db) };
}

/** What is stored of an exchange, without the numbers of loads and the moments. */
async function stored(
  { db }: Context,
  exchange: string,
  kinds: ReadonlySet<Response['kind']>,
  past: boolean,
) {
  const parts = [...kinds].flatMap((kind) =>
    kindOf(kind).tables.flatMap(({ name, columns }) => {
      const row = `concat_ws(' ', '${name}', ${columns.join(', ')}, source_saved_at`;
      const rows = `select ${row}${past ? ', revision' : ''}) as text from market.${name} where exchange = $1`;
      const history = `select 'past ' || ${row}, revision, withdrawn) from market_history.${name} where exchange = $1`;
      return past ? [rows, history] : [rows];
    }),
  );
  const found = await db.pool.query<{ text: string }>(
    `${parts.join(' union all ')}
     union all select concat_ws(' ', 'coverage', operation, day, state, records) from etl.coverage where exchange = $1
     union all select concat_ws(' ', 'withheld', table_name, day, unlisted_rows, remaining_rows, max_rows) from etl.withdrawals
       where exchange = $1 and state = 'withheld' order by 1`,
    [exchange],
  );
  return found.rows.map(({ text }) => text);
}

async function acceptAll({ context, exchange }: Position): Promise<number> {
  const { db, config } = context;
  const found = await db.pool.query<{ id: number }>(
    `select id::int from etl.withdrawals where exchange = $1 and state = 'withheld' order by table_name, day, position`,
    [exchange],
  );
  for (const { id } of found.rows) {
    await acceptWithdrawal(db, id, {
      by: 'me',
      readAgain: (response) => readToFold(context, response),
      maxWithdrawShare: config.EOD_MAX_WITHDRAW_SHARE,
    });
  }
  return found.rows.length;
}

/** Are so many of its records rejected that no row is stored? It says that its day failed, whatever came later. */
const isRejected = ({ sent }: Response) =>
  sent.filter(({ what }) => what !== 'row').length > MAX_REJECT_SHARE * sent.length;

const SINGLE_DAYS: readonly Response['kind'][] = ['bhav', 'gainers', 'changes', 'categories'];

/** Responses about single days, nearly in the order of their positions. */
const responsesInOrder = fc
  .tuple(
    fc.array(stepsOf, { minLength: 3, maxLength: 3 }),
    fc.array(fc.nat(3), { minLength: 30, maxLength: 30 }),
  )
  .map(([sets, delays]) => {
    const found = sets
      .flat()
      .flatMap((step) => (step.act === 'load' ? [step.response] : []))
      .filter(({ kind, from, to }) => SINGLE_DAYS.includes(kind) && from === to);
    const positions = positionsOf(found);
    const order = new Map(
      found
        .toSorted((a, b) => ((positions.get(a) ?? '') < (positions.get(b) ?? '') ? -1 : 1))
        .map((response, at) => [response, at + (delays[at] === 3 ? 3.5 : 0)]),
    );
    return found.toSorted((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
  });

test('what is loaded after pruning ends as if nothing had been pruned; what comes before a pruned response changes nothing', async () => {
  const pruned = await openPosition();
  const whole = await openPosition();
  let exchanges = 0;
  let [cuts, ignored, accepted] = [0, 0, 0];
  await forAllAsync(
    [responsesInOrder, fc.double({ min: 0.2, max: 0.9, noNaN: true }), fc.nat(CALLS.length - 1)],
    { numRuns: RUNS, seed: 20_270_901, endOnFailure: true },
    async (responses, share, call) => {
      exchanges += 1;
      const exchange = `N${exchanges}`;
      const [one, other] = [
        { ...pruned, exchange },
        { ...whole, exchange },
      ];
      const kinds = new Set(responses.map(({ kind }) => kind));
      if (kinds.size === 0) return;
      const positions = positionsOf(responses, exchanges);
      const positionOf = (response: Response) => positions.get(response) ?? '';
      const first = responses.slice(0, Math.ceil(share * responses.length));
      for (const response of first)
        for (const position of [one, other]) await load(position, response, positionOf(response));
      await prune(one.context.db, new Date((CALLS[call]?.at ?? 0) + 600_000));
      const found = await one.context.db.pool.query<{ operation: string; position: string }>(
        `select operation, to_char(position at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as position from etl.pruned where exchange = $1`,
        [exchange],
      );
      cuts += found.rows.length;
      const upTo = (response: Response) =>
        found.rows.find(({ operation }) => operation === tableGroupOf(kindOf(response.kind).operation).name)
          ?.position ?? '';
      const isPruned = (response: Response) => positionOf(response) <= upTo(response);
      const sameDay = (a: Response, b: Response) =>
        a.kind === b.kind && (a.from === b.from || kindOf(a.kind).requests === 'once');
      // A response whose records were rejected as a whole has left no rows.
      const loads = await one.context.db.pool.query<{ position: string }>(
        `select to_char(position at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as position from etl.loads where exchange = $1`,
        [exchange],
      );
      const loaded = new Set(loads.rows.map(({ position }) => position));
      const compare = async (past: boolean) =>
        expect(await stored(one.context, exchange, kinds, past)).toEqual(
          await stored(other.context, exchange, kinds, past),
        );
      await compare(true);
      for (const response of responses.slice(first.length)) {
        const isOutdated =
          !isRejected(response) &&
          first.some(
            (earlier) =>
              isPruned(earlier) &&
              loaded.has(positionOf(earlier)) &&
              sameDay(earlier, response) &&
              positionOf(earlier) > positionOf(response),
          );
        // It has no rows to leave out, and says something of its day only if nobody else has.
        if (isOutdated && response.sent.length === 0) continue;
        const before = await stored(one.context, exchange, kinds, true);
        await load(one, response, positionOf(response));
        if (isOutdated) {
          ignored += 1;
          expect(await stored(one.context, exchange, kinds, true)).toEqual(before);
        } else {
          await load(other, response, positionOf(response));
          await compare(true);
        }
      }
      if (responses.length > first.length) {
        for (const position of [one, other])
          await replay(position.context, { exchanges: [exchange] }).catch(() => null);
        await compare(true);
      }
      // Once more, after responses that were late: how far responses are pruned only moves forward.
      await prune(one.context.db, new Date((CALLS[call]?.at ?? 0) + 600_000));
      const again = await one.context.db.pool.query<{ isBack: boolean }>(
        `select exists (select from unnest($2::text[], $3::timestamptz[]) b(operation, position) where b.operation = p.operation and b.position > p.position) as "isBack"
           from etl.pruned p where exchange = $1`,
        [exchange, found.rows.map(({ operation }) => operation), found.rows.map(({ position }) => position)],
      );
      expect(again.rows.filter(({ isBack }) => isBack)).toEqual([]);
      accepted += await acceptAll(one);
      await acceptAll(other);
      await compare(true);
      for (const position of [one, other]) {
        await replay(position.context, { exchanges: [exchange] }, { rebuild: true }).catch((error: Error) =>
          expect(error.message).toBe('there is nothing to replay'),
        );
      }
      await compare(false);
    },
  );
  expect(cuts).toBeGreaterThan(setsOf(RUNS) / 3);
  // Not every set of a few has these.
  if (!isSlowLayer) return;
  expect(ignored).toBeGreaterThan(0);
  expect(accepted).toBeGreaterThan(0);
}, 1_800_000);
