import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { startScheduler } from '../jobs/worker/scheduler.ts';
import { startWorker } from '../jobs/worker/worker.ts';
import { startHealthServer } from '../web/health.ts';
import { parseChoices } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { say } from './output.ts';

const ROLES = ['scheduler', 'worker'] as const;

export function upCommand(program: Command, cli: Cli): Command {
  return program
    .command('up')
    .description(
      'Keep running: plan the nights as scheduled and work on every run. Stops on SIGTERM or Ctrl-C.',
    )
    .option('--roles <list>', 'what to do: scheduler, worker or both', ROLES.join(','))
    .addHelpText('after', examples('eod up', 'eod up --roles worker'))
    .action((flags: { readonly roles: string }) => up(cli, flags.roles));
}

async function up({ life }: Cli, text: string): Promise<void> {
  const roles = [...new Set(parseChoices('--roles', text, ROLES, 'role'))];
  const config = loadConfig();
  // Only the worker talks to the source; a scheduler alone needs neither its address nor the key.
  const worker = roles.includes('worker')
    ? await openContext(life, config, { source: true, wait: 'long' })
    : null;
  const context = worker ?? (await openContext(life, config, { queue: true, wait: 'long' }));
  const health = await life.open(
    () => startHealthServer(context, { roles, stopping: life.signal }),
    (opened) => opened.close(),
  );
  if (roles.includes('scheduler')) {
    await life.open(
      () => startScheduler(context),
      (opened) => opened.stop(),
    );
  }
  if (worker !== null) {
    await life.open(
      () => startWorker(worker),
      (opened) => opened.stop(),
    );
  }
  say(`eod is up (${roles.join(' and ')}); health: ${health.url}/healthz`);
  await life.stopped;
}
