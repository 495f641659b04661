import { processCli } from './cli.ts';
import { explain } from './explain-error.ts';
import { createLifecycle } from './lifecycle.ts';
import { runProgram } from './program.ts';

// Node 20 has no `navigator`. Without it node-postgres looks for the global `Response`, which loads an HTTP client.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: { userAgent: 'Node.js/20' } });

const life = createLifecycle();
const cli = processCli(life);
const outputs = [process.stdout, process.stderr];

// A reader may stop early (`eod runs | head`), which is no error.
for (const stream of outputs) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

process.on('uncaughtException', (error) => {
  const code = explain(cli, error);
  life.abandon();
  process.exit(code);
});

const code = await runProgram(cli, process.argv.slice(2));
// Wait until everything printed has been written.
for (const stream of outputs) {
  await new Promise<void>((resolve) => void stream.write('', () => resolve()));
}
process.exit(code);
