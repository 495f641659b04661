import { type Fault, type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';
import { closeAfterFile } from './closing.ts';

/** A sandbox that is closed after the file's last test, if not before. */
export async function openSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox(options);
  closeAfterFile(() => sandbox.close());
  return sandbox;
}

/** What a source responds with whose key has no right to these operations. */
export const notEnabled = (...operations: readonly string[]): Fault[] =>
  operations.map((operation) => ({ kind: 'diagnostic', value: 'Function not enabled.', operation }));

/** What a source responds with that serves no longer range of an operation. */
export const rangeLimit = (operation: string, days: number): Fault => ({
  kind: 'diagnostic',
  value: `Date is out of allowed range of ${days === 1 ? '1 day' : `${days} days`}.`,
  operation,
  minDays: days + 1,
});
