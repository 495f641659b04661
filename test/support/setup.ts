import { afterAll, afterEach } from 'vitest';
import { closeFile, closeTest } from './closing.ts';
import { isSlowLayer } from './layer.ts';
import { patience } from './wait-for.ts';

// Vitest runs this anew for each file. Files share a process and with it the modules of test/support, where a
// hook would be registered for the first file only.
afterEach(closeTest);
afterAll(closeFile);
// Times given to single waits are those of a quiet machine.
patience.times = isSlowLayer ? 4 : 1;
