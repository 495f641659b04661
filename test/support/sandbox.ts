import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';
import { closeAfterFile } from './closing.ts';

/** A sandbox that is closed after the file's last test, if not before. */
export async function openSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox(options);
  closeAfterFile(() => sandbox.close());
  return sandbox;
}
