/** Limits how many things are done at the same time. */
export interface Slots {
  /** Resolves when a slot is free, in the order of the calls, and takes it. */
  take(): Promise<void>;
  /** Frees a slot that was taken. */
  release(): void;
}

/** Creates `count` slots, all of them free. */
export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  return {
    async take() {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
    },
    release() {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    },
  };
}
