import { expect, test } from 'vitest';
import { createSlots } from '../../src/core/slots.ts';

test('as many take a slot as there are; the others wait for their turn', async () => {
  const slots = createSlots(2);
  const taken: number[] = [];
  const waiting = [1, 2, 3, 4].map((number) => slots.take().then(() => taken.push(number)));
  await Promise.all(waiting.slice(0, 2));
  expect(taken).toEqual([1, 2]);
  slots.release();
  await waiting[2];
  expect(taken).toEqual([1, 2, 3]);
  slots.release();
  slots.release();
  slots.release();
  await Promise.all([...waiting, slots.take(), slots.take()]);
  expect(taken).toEqual([1, 2, 3, 4]);
});
