import { afterAll, afterEach } from 'vitest';
import { useOperations } from '../../src/operations/registry.ts';
import { closeFile, closeTest } from './closing.ts';

// Vitest runs this anew for each file. Files share a process and with it the modules of test/support, where a
// hook would be registered for the first file only.
afterEach(closeTest);
afterAll(closeFile);
// Files share the registry of operations as well.
afterAll(() => useOperations([]));
