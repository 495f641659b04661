import { processCli } from './cli.ts';
import { createLifecycle } from './lifecycle.ts';
import { explain, runProgram } from './program.ts';

// Node 21 and newer have it. Without it node-postgres asks for `Response`, and with that loads an HTTP client.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: { userAgent: 'Node.js/20' } });

const life = createLifecycle();
const cli = processCli(life);
const outputs = [process.stdout, process.stderr];

// Whoever reads us may leave early (`eod runs | head`): nothing is wrong then.
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
// What was printed has to leave this process first.
for (const stream of outputs) {
  await new Promise<void>((resolve) => void stream.write('', () => resolve()));
}
process.exit(code);
