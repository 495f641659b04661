import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { readToFold } from '../../src/jobs/responses/store-answer.ts';
import { acceptWithdrawal } from '../../src/load/market/accept-withdrawal.ts';
import { prune } from '../../src/load/state/answers/answers.ts';
import { tableGroupOf } from '../../src/operations/registry.ts';
import { openStore } from '../jobs/import-support.ts';
import { replay } from '../jobs/replay-support.ts';
import { forAllAsync, setsOf } from '../support/for-all.ts';
import { isSlowLayer } from '../support/layer.ts';
import { type Answer, CALLS, kindOf, placesOf } from './any-order/answers.ts';
import { stepsOf } from './any-order/draw.ts';
import { MAX_REJECT_SHARE } from './any-order/model.ts';
import { load, type Place } from './any-order/run.ts';
import { newRun } from './support.ts';

/** Sets that are tried. */
const RUNS = 2;

async function openPlace(): Promise<Omit<Place, 'exchange'>> {
  const context = await openStore(undefined, { EOD_MAX_REJECT_SHARE: String(MAX_REJECT_SHARE) });
  return { context, runId: await newRun(context.db) };
}

/** What is stored of an exchange, without the numbers of loads and the moments. */
async function stored({ db }: Context, exchange: string, kinds: ReadonlySet<Answer['kind']>, past: boolean) {
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
     union all select concat_ws(' ', 'held back', table_name, day, gone, rows_left, most) from etl.withdrawals
       where exchange = $1 and state = 'refused' order by 1`,
    [exchange],
  );
  return found.rows.map(({ text }) => text);
}

async function acceptAll({ context, exchange }: Place): Promise<number> {
  const { db, config } = context;
  const found = await db.pool.query<{ id: number }>(
    `select id::int from etl.withdrawals where exchange = $1 and state = 'refused' order by table_name, day, place`,
    [exchange],
  );
  for (const { id } of found.rows) {
    await acceptWithdrawal(db, id, {
      by: 'me',
      readAgain: (answer) => readToFold(context, answer),
      maxWithdrawShare: config.EOD_MAX_WITHDRAW_SHARE,
    });
  }
  return found.rows.length;
}

/** Are so many of its records rejected that no row is stored? It says that its day failed, whatever came later. */
const isRejected = ({ sent }: Answer) =>
  sent.filter(({ what }) => what !== 'row').length > MAX_REJECT_SHARE * sent.length;

const SINGLE_DAYS: readonly Answer['kind'][] = ['bhav', 'gainers', 'changes', 'categories'];

/** Answers about single days, nearly in the order of their places. */
const answersInOrder = fc
  .tuple(
    fc.array(stepsOf, { minLength: 3, maxLength: 3 }),
    fc.array(fc.nat(3), { minLength: 30, maxLength: 30 }),
  )
  .map(([sets, delays]) => {
    const found = sets
      .flat()
      .flatMap((step) => (step.act === 'load' ? [step.answer] : []))
      .filter(({ kind, from, to }) => SINGLE_DAYS.includes(kind) && from === to);
    const places = placesOf(found);
    const positions = new Map(
      found
        .toSorted((a, b) => ((places.get(a) ?? '') < (places.get(b) ?? '') ? -1 : 1))
        .map((answer, at) => [answer, at + (delays[at] === 3 ? 3.5 : 0)]),
    );
    return found.toSorted((a, b) => (positions.get(a) ?? 0) - (positions.get(b) ?? 0));
  });

test('what is loaded after pruning ends as if nothing had been pruned; what comes before a pruned answer changes nothing', async () => {
  const pruned = await openPlace();
  const whole = await openPlace();
  let exchanges = 0;
  let [cuts, ignored, accepted] = [0, 0, 0];
  await forAllAsync(
    [answersInOrder, fc.double({ min: 0.2, max: 0.9, noNaN: true }), fc.nat(CALLS.length - 1)],
    { numRuns: RUNS, seed: 20_270_901, endOnFailure: true },
    async (answers, share, call) => {
      exchanges += 1;
      const exchange = `N${exchanges}`;
      const [one, other] = [
        { ...pruned, exchange },
        { ...whole, exchange },
      ];
      const kinds = new Set(answers.map(({ kind }) => kind));
      if (kinds.size === 0) return;
      const places = placesOf(answers, exchanges);
      const placeOf = (answer: Answer) => places.get(answer) ?? '';
      const first = answers.slice(0, Math.ceil(share * answers.length));
      for (const answer of first)
        for (const place of [one, other]) await load(place, answer, placeOf(answer));
      await prune(one.context.db, new Date((CALLS[call]?.at ?? 0) + 600_000));
      const found = await one.context.db.pool.query<{ operation: string; place: string }>(
        `select operation, to_char(place at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as place from etl.pruned where exchange = $1`,
        [exchange],
      );
      cuts += found.rows.length;
      const upTo = (answer: Answer) =>
        found.rows.find(({ operation }) => operation === tableGroupOf(kindOf(answer.kind).operation).name)
          ?.place ?? '';
      const isPruned = (answer: Answer) => placeOf(answer) <= upTo(answer);
      const sameDay = (a: Answer, b: Answer) =>
        a.kind === b.kind && (a.from === b.from || kindOf(a.kind).asks === 'once');
      // An answer whose records were rejected as a whole has left no rows.
      const loads = await one.context.db.pool.query<{ place: string }>(
        `select to_char(place at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as place from etl.loads where exchange = $1`,
        [exchange],
      );
      const loaded = new Set(loads.rows.map(({ place }) => place));
      const compare = async (past: boolean) =>
        expect(await stored(one.context, exchange, kinds, past)).toEqual(
          await stored(other.context, exchange, kinds, past),
        );
      await compare(true);
      for (const answer of answers.slice(first.length)) {
        const isOutdated =
          !isRejected(answer) &&
          first.some(
            (earlier) =>
              isPruned(earlier) &&
              loaded.has(placeOf(earlier)) &&
              sameDay(earlier, answer) &&
              placeOf(earlier) > placeOf(answer),
          );
        // It has no rows to leave out, and says something of its day only if nobody else has.
        if (isOutdated && answer.sent.length === 0) continue;
        const before = await stored(one.context, exchange, kinds, true);
        await load(one, answer, placeOf(answer));
        if (isOutdated) {
          ignored += 1;
          expect(await stored(one.context, exchange, kinds, true)).toEqual(before);
        } else {
          await load(other, answer, placeOf(answer));
          await compare(true);
        }
      }
      if (answers.length > first.length) {
        for (const place of [one, other])
          await replay(place.context, { exchanges: [exchange] }).catch(() => null);
        await compare(true);
      }
      // Once more, after answers that were late: how far answers are pruned only moves forward.
      await prune(one.context.db, new Date((CALLS[call]?.at ?? 0) + 600_000));
      const again = await one.context.db.pool.query<{ isBack: boolean }>(
        `select exists (select from unnest($2::text[], $3::timestamptz[]) b(operation, place) where b.operation = p.operation and b.place > p.place) as "isBack"
           from etl.pruned p where exchange = $1`,
        [exchange, found.rows.map(({ operation }) => operation), found.rows.map(({ place }) => place)],
      );
      expect(again.rows.filter(({ isBack }) => isBack)).toEqual([]);
      accepted += await acceptAll(one);
      await acceptAll(other);
      await compare(true);
      for (const place of [one, other]) {
        await replay(place.context, { exchanges: [exchange] }, { rebuild: true }).catch((error: Error) =>
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
