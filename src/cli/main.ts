import type { Cli } from './command.ts';
import { explain } from './errors.ts';
import { createLifecycle } from './lifecycle.ts';
import { flush, say } from './output.ts';
import { buildProgram } from './program.ts';

const life = createLifecycle();

// Whoever reads us may leave early (`eod runs | head`): nothing is wrong then.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

process.on('uncaughtException', (error) => {
  const code = explain(error);
  life.abandon();
  process.exit(code);
});

const cli: Cli = { life, exitCode: 0 };
try {
  await buildProgram(cli).parseAsync();
} catch (error) {
  // What a signal cut short is not an error, whatever broke on the way.
  cli.exitCode = life.cutShort() ?? explain(error);
}
for (const problem of await life.close()) {
  say(`eod: while closing: ${problem}`);
  cli.exitCode ||= 1;
}
await flush();
process.exit(cli.exitCode);
