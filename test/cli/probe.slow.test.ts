import { expect } from 'vitest';
import { OPEN_POINTS } from '../../src/sandbox/index.ts';
import { probe, sourceWith, statesOf } from './probe-support.ts';
import { test } from './support.ts';

/** What cannot be seen at an address that serves one day: hours, and a ratio if the day has none. */
const UNSEEN_AT_A_TRIAL_ADDRESS = ['codedRatios', 'exactTimes'];

test('as assumed, every point is settled within the calls allowed', async ({ url }) => {
  const { code, json } = await probe(url, (await sourceWith()).url);
  expect(code).toBe(0);
  expect(json.openPoints.filter(({ state }) => state !== 'settled')).toEqual([]);
  expect(json.openPoints).toHaveLength(OPEN_POINTS.length);
  expect(json.counted).toBeLessThanOrEqual(25);
});

test.for(OPEN_POINTS.map((point) => [point.flag, point] as const))(
  '%s alone is otherwise, and no other point',
  async ([, { name, behaviour }], { url }) => {
    const { code, json } = await probe(url, (await sourceWith(behaviour)).url);
    expect(code).toBe(0);
    expect(json.counted).toBeLessThanOrEqual(25);
    const unseen = name === 'trialDay' ? UNSEEN_AT_A_TRIAL_ADDRESS : [];
    expect(statesOf(json)).toEqual(
      Object.fromEntries(
        OPEN_POINTS.map((point) => [
          point.name,
          point.name === name ? 'contradicts' : unseen.includes(point.name) ? 'undecided' : 'settled',
        ]),
      ),
    );
  },
);
