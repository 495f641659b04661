import type { FileSession } from '../../extract/files/read-file.ts';

type Read<Session> = () => Promise<readonly Session[]>;

/**
 * Keeps files of one session in the order they are taken up in, while others go side by side: the
 * last one stands, and which that is must not depend on who was quicker.
 *
 * @returns a function that reads a file at once, and stores it when all files taken up before it are
 *   read, and those of the same sessions stored. It fails as its `read` and `store` do.
 */
export function createTurns<Session extends Pick<FileSession, 'exchange' | 'day'>>() {
  const storing = new Map<string, Promise<unknown>>();
  let allRead: Promise<unknown> = Promise.resolve();
  return async function inTurn<Result>(
    read: Read<Session>,
    store: (sessions: readonly Session[]) => Promise<Result>,
  ): Promise<Result> {
    const reading = read();
    const mine = Promise.allSettled([reading, allRead]).then(([file]) => {
      const sessions = file.status === 'fulfilled' ? file.value : [];
      const keys = sessions.map(({ exchange, day }) => `${exchange} ${day}`);
      const earlier = keys.map((key) => storing.get(key));
      for (const key of keys) storing.set(key, ended);
      return earlier;
    });
    allRead = mine;
    const stored = mine.then(async (earlier) => {
      await Promise.all(earlier);
      return store(await reading);
    });
    const ended = stored.then(
      () => undefined,
      () => undefined,
    );
    return stored;
  };
}
