import { beforeAll, describe, expect, test } from 'vitest';
import { tables } from '../../../src/operations/registry.ts';
import {
  describeSteps,
  type Step,
  smaller,
  stepsOf,
  stepsOfSomeInstruments,
} from '../../support/any-order/draw.ts';
import { MAX_REJECT_SHARE, type Topic } from '../../support/any-order/model.ts';
import { LOOKBACK, positionsOf } from '../../support/any-order/responses.ts';
import { type Deviation, type FreshExchange, KILL_LOADS, run } from '../../support/any-order/run.ts';
import { sample } from '../../support/for-all.ts';
import { openStore } from '../../support/import-support.ts';
import { newRun } from '../support.ts';
import { truncateSql } from './commute-support.ts';

/** EOD_TEST_EXAMPLES=2 counts the sets that deviate in each topic, instead of failing, and prints two of each. */
const EXAMPLES = process.env.EOD_TEST_EXAMPLES;

/** So many sets are tried at once, … */
const AT_ONCE = 3;
/** … and after so many the database is emptied, because what is about all exchanges becomes slow. */
const BATCH = 48;

let target: Omit<FreshExchange, 'exchange'>;
let exchanges = 0;
beforeAll(async () => {
  const context = await openStore(undefined, {
    EOD_MAX_REJECT_SHARE: String(MAX_REJECT_SHARE),
    EOD_LOOKBACK_SESSIONS: String(LOOKBACK),
  });
  await context.db.pool.query(KILL_LOADS);
  target = { context, runId: await newRun(context.db) };
});

/** Each set has an exchange of its own, so that no database has to be emptied for it. */
function runSet(steps: readonly Step[]): Promise<Deviation[]> {
  exchanges += 1;
  return run({ ...target, exchange: `N${exchanges}` }, steps);
}

/** Runs all sets, some at once. @returns those that deviate in a topic. */
async function runSets(sets: readonly (readonly Step[])[]) {
  const failed: { readonly steps: readonly Step[]; readonly topic: Topic }[] = [];
  for (let at = 0; at < sets.length; at += BATCH) {
    const queue = sets.slice(at, at + BATCH);
    const work = async () => {
      for (let steps = queue.shift(); steps !== undefined; steps = queue.shift()) {
        for (const { topic } of await runSet(steps)) failed.push({ steps, topic });
        if (failed.length > 0 && EXAMPLES === undefined) return;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (failed.length > 0 && EXAMPLES === undefined) break;
    await target.context.db.pool.query(truncateSql(tables.map(({ name }) => name)));
  }
  return failed;
}

/** Removes things from a set as long as it fails. */
async function smallest(
  steps: readonly Step[],
  fails: (steps: readonly Step[]) => Promise<boolean>,
): Promise<readonly Step[]> {
  for (const fewer of smaller(steps)) {
    // What happens at the same time does not always happen in the same way.
    const tries = fewer.some((step) => step.act === 'load' && step.together) ? 4 : 1;
    for (let at = 0; at < tries; at += 1) if (await fails(fewer)) return smallest(fewer, fails);
  }
  return steps;
}

/** The smallest set with which a topic deviates, and how, for people. */
async function explain(steps: readonly Step[], topic: Topic): Promise<string> {
  let last: Deviation | undefined;
  const smallestSteps = await smallest(steps, async (candidate) => {
    const deviation = (await runSet(candidate)).find((deviation) => deviation.topic === topic);
    last = deviation ?? last;
    return deviation !== undefined;
  });
  const positions = positionsOf(
    smallestSteps.flatMap((step) => (step.act === 'load' ? [step.response] : [])),
  );
  const texts = [
    ...(last?.missing ?? []).map((text) => `  missing    ${text}`),
    ...(last?.unexpected ?? []).map((text) => `  unexpected ${text}`),
  ];
  return `${topic}, after step ${last?.step} of\n${describeSteps(smallestSteps, positions)}\n${texts.join('\n')}`;
}

describe('responses that are loaded in any order, with replays, kills and emptied tables in between', () => {
  test('leave what the fold of them in their order leaves, after every load', async () => {
    const sets = [
      ...sample(stepsOf, { numRuns: 6, seed: 20_270_817 }),
      ...sample(stepsOfSomeInstruments, { numRuns: 2, seed: 20_270_818 }),
    ];
    const begun = Date.now();
    if (EXAMPLES === undefined) {
      const [failed] = await runSets(sets);
      if (failed !== undefined) expect.fail(await explain(failed.steps, failed.topic));
      return;
    }
    const failed = await runSets(sets);
    const topics = new Set(failed.map(({ topic }) => topic));
    console.log(`${sets.length} sets, ${Math.round((Date.now() - begun) / sets.length)} ms each`);
    for (const topic of topics) {
      const failures = failed.filter((deviation) => deviation.topic === topic);
      console.log(`${topic}: ${failures.length} sets`);
      for (const { steps } of failures.slice(0, Number(EXAMPLES))) console.log(await explain(steps, topic));
    }
  }, 3_600_000);
});
