import { type Fault, type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';
import { closeAfterFile } from './closing.ts';

/** A sandbox that is closed after the file's last test, if not before. */
export async function openSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox(options);
  closeAfterFile(() => sandbox.close());
  return sandbox;
}

/** The responses of a source whose key has no right to these operations. */
export const notEnabled = (...operations: readonly string[]): Fault[] =>
  operations.map((operation) => ({ kind: 'diagnostic', value: 'Function not enabled.', operation }));

/** The response of a source to a request for more days of an operation than these. */
export const rangeLimit = (operation: string, days: number): Fault => ({
  kind: 'diagnostic',
  value: `Date is out of allowed range of ${days === 1 ? '1 day' : `${days} days`}.`,
  operation,
  minDays: days + 1,
});
