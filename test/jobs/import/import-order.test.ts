import { describe, expect, test } from 'vitest';
import { createOrderedStore } from '../../../src/jobs/import/files.ts';

/** A promise and how to resolve it. */
function later<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

const monday = [{ dataSet: 'GetBhavCopyCM', exchange: 'NSE', day: '2025-09-01', rank: 0 }];
const tuesday = [{ dataSet: 'GetBhavCopyCM', exchange: 'NSE', day: '2025-09-02', rank: 0 }];

describe('files that are read at the same time', () => {
  test('are stored in their order if they hold the same trading day, whichever is read or stored faster', async () => {
    const storeInOrder = createOrderedStore();
    const done: string[] = [];
    const [readFirst, storeFirst] = [later<typeof monday>(), later<void>()];
    const first = storeInOrder(
      () => readFirst.promise,
      async () => {
        await storeFirst.promise;
        done.push('first');
      },
    );
    const second = storeInOrder(
      async () => monday,
      async () => done.push('second'),
    );
    const other = storeInOrder(
      async () => tuesday,
      async () => done.push('other day'),
    );
    readFirst.resolve(monday);
    await other;
    expect(done).toEqual(['other day']);
    storeFirst.resolve();
    await Promise.all([first, second]);
    expect(done).toEqual(['other day', 'first', 'second']);
  });

  test('do not hold up others when they cannot be read or stored', async () => {
    const storeInOrder = createOrderedStore();
    const unreadable = storeInOrder(
      () => Promise.reject(new Error('unreadable')),
      async () => 'stored',
    );
    const refused = storeInOrder(
      async () => monday,
      () => Promise.reject(new Error('refused')),
    );
    const last = storeInOrder(
      async () => monday,
      async (tradingDays) => tradingDays,
    );
    await expect(unreadable).rejects.toThrow('unreadable');
    await expect(refused).rejects.toThrow('refused');
    expect(await last).toEqual(monday);
  });
});
