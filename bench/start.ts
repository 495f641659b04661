// How long `eod` takes to respond, beside `node -e 0` in the same round: `npm run bench:start`. Exit code 1 if a
// target is missed.
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { machineFacts, median, table } from './support/figures.ts';
import { parseFlags } from './support/flags.ts';
import { dropDatabase, freshDatabase, startBenchServer } from './support/postgres.ts';

const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Milliseconds beyond `node -e 0` within which the program speaks, and within which it has looked at a database. */
const MORE_THAN_NODE = 150;
const STATUS_MORE_THAN_NODE = 400;

const flags = parseFlags({
  rounds: { type: 'string', default: '21' },
  json: { type: 'boolean', default: false },
});
const rounds = Number(flags.rounds);

/** Help, and every kind of mistake a command line can hold. */
const QUICK = [
  ['--version'],
  ['help'],
  ['help', 'status'],
  ['help', 'backfill'],
  ['help', 'sandbox'],
  ['frobnicate'],
  ['runs', '--jsn'],
  ['runs', '--limit'],
  ['runs', 'first'],
  ['backfill', '--frm'],
] as const;

execFileSync(process.execPath, [at('scripts/build.mjs'), '--if-stale']);
const server = await startBenchServer();
try {
  const url = await freshDatabase(server.url, 'bench_start');
  const settings = { DATABASE_URL: url };
  run(['migrate'], settings);
  run(['status'], settings);
  const nodes: number[] = [];
  const statuses: number[] = [];
  const quick = QUICK.map((args) => ({ args, times: [] as number[], beyond: [] as number[] }));
  for (let round = 0; round < rounds; round += 1) {
    const node = timed(() => spawnSync(process.execPath, ['-e', '0']));
    nodes.push(node);
    for (const command of quick) {
      const time = timed(() => run(command.args, {}));
      command.times.push(time);
      command.beyond.push(time - node);
    }
    statuses.push(timed(() => run(['status'], settings)));
  }
  const figures = [
    { command: 'node -e 0', ms: median(nodes), beyondNode: 0, target: 'none' },
    ...quick.map(({ args, times, beyond }) => ({
      command: `eod ${args.join(' ')}`,
      ms: median(times),
      beyondNode: median(beyond),
      target: `${MORE_THAN_NODE} beyond node`,
    })),
    {
      command: 'eod status',
      ms: median(statuses),
      beyondNode: median(statuses) - median(nodes),
      target: `${STATUS_MORE_THAN_NODE} beyond node`,
    },
  ];
  const missed =
    quick.some(({ beyond }) => median(beyond) > MORE_THAN_NODE) ||
    median(statuses) - median(nodes) > STATUS_MORE_THAN_NODE;
  if (flags.json) {
    console.log(JSON.stringify({ machine: machineFacts(), rounds, missed, figures }, null, 2));
  } else {
    const rows = figures.map(({ command, ms, beyondNode, target }) => [
      command,
      ms.toFixed(0),
      beyondNode.toFixed(0),
      target,
    ]);
    console.log(`${machineFacts()}; medians of ${rounds} rounds, in ms`);
    console.log(table(['command', 'time', 'beyond node', 'target'], rows));
    console.log(missed ? 'a target is missed' : 'every target is met');
  }
  await dropDatabase(server.url, 'bench_start');
  process.exitCode = missed ? 1 : 0;
} finally {
  await server.stop();
}

function run(args: readonly string[], settings: Readonly<Record<string, string>>): void {
  const { PATH = '' } = process.env;
  spawnSync(process.execPath, [at('bin/eod.mjs'), ...args], {
    cwd: server.folder,
    env: { PATH, ...settings },
  });
}

/** How long it takes, in milliseconds. */
function timed(work: () => unknown): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}
