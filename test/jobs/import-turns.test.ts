import { describe, expect, test } from 'vitest';
import { createTurns } from '../../src/jobs/import/files.ts';

/** A promise and what settles it. */
function later<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

const monday = [{ exchange: 'NSE', day: '2025-09-01' }];
const tuesday = [{ exchange: 'NSE', day: '2025-09-02' }];

describe('files taken up side by side', () => {
  test('of one session are stored in their order, whoever is read or stored first', async () => {
    const inTurn = createTurns();
    const done: string[] = [];
    const [readFirst, storeFirst] = [later<typeof monday>(), later<void>()];
    const first = inTurn(
      () => readFirst.promise,
      async () => {
        await storeFirst.promise;
        done.push('first');
      },
    );
    const second = inTurn(
      async () => monday,
      async () => done.push('second'),
    );
    const other = inTurn(
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

  test('that cannot be read or stored hold up nobody', async () => {
    const inTurn = createTurns();
    const unreadable = inTurn(
      () => Promise.reject(new Error('unreadable')),
      async () => 'stored',
    );
    const refused = inTurn(
      async () => monday,
      () => Promise.reject(new Error('refused')),
    );
    const last = inTurn(
      async () => monday,
      async (sessions) => sessions,
    );
    await expect(unreadable).rejects.toThrow('unreadable');
    await expect(refused).rejects.toThrow('refused');
    expect(await last).toEqual(monday);
  });
});
