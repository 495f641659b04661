/** What a test or a file has opened and has to be closed after it. */
const afterTest: (() => unknown)[] = [];
const afterFile: (() => unknown)[] = [];

/** Closes something after the test that is running, whether it passes or not. */
export function closeAfterTest(close: () => unknown): void {
  afterTest.push(close);
}

/** Closes something after the last test of the file. Safe for what the file may have closed itself by then. */
export function closeAfterFile(close: () => unknown): void {
  afterFile.push(close);
}

export const closeTest = () => closeAll(afterTest);
export const closeFile = () => closeAll(afterFile);

/** The last opened first: a pipeline before its database. One that fails does not keep the others open. */
async function closeAll(open: (() => unknown)[]): Promise<void> {
  const errors: unknown[] = [];
  for (let close = open.pop(); close !== undefined; close = open.pop()) {
    try {
      await close();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
