// Measures the pipeline, each bench beside its baseline in the same round: `npm run bench -- --help`. What each
// measures, and what came of it: bench/README.md.
import { filled } from './cases/filled.ts';
import { fiveYears } from './cases/five-years.ts';
import { importFiles } from './cases/import.ts';
import { load } from './cases/load.ts';
import { plan } from './cases/plan.ts';
import { smallWindows } from './cases/small-windows.ts';
import { memory, scaleWorkers } from './cases/workers.ts';
import type { Case, Figures, Site } from './support/bench.ts';
import { machineFacts } from './support/figures.ts';
import { exitWithUsage, parseFlags } from './support/flags.ts';
import { startBenchServer } from './support/postgres.ts';
import { startSource } from './support/processes.ts';
import {
  figuresText,
  isReached,
  type Result,
  resultsDocument,
  resultsText,
  saveResults,
  settingsOf,
  summarize,
} from './support/results.ts';

const CASES: readonly Case[] = [
  load,
  importFiles,
  smallWindows,
  scaleWorkers,
  memory,
  plan,
  filled,
  fiveYears,
];
const BENCHES = CASES.flatMap(({ benches }) => benches);

/** Records of a trading day: as many as an exchange has instruments. */
const RECORDS_PER_DAY = 5_000;
/** The small form checks counts only. */
const SMALL = { records: 1_000, rounds: 1, recordsPerDay: 250 };

const flags = parseFlags({
  only: { type: 'string' },
  records: { type: 'string', default: '1000000' },
  rounds: { type: 'string', default: '3' },
  small: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
});
if (flags.help) {
  const width = Math.max(...BENCHES.map(({ name }) => name.length));
  const names = BENCHES.map(
    ({ name, what, against }) =>
      `  ${name.padEnd(width)}  ${what}${against === null ? '' : `; beside: ${against}`}`,
  );
  console.log(`npm run bench -- [--only NAME,NAME] [--records N] [--rounds N] [--json] [--check] [--small]

  --only NAME,…  these benches; all when not given
  --records N    size, in bhav copy records (default 1000000); the benches that need more or less follow it
  --rounds N     how often each bench and its baseline are measured in turn (default 3)
  --json         one JSON document on stdout instead of the table
  --check        exit code 1 where a reach is missed
  --small        a tiny form of every bench that checks its counts; no time is judged, nothing is written

Prints medians (the worst of what has a highest value) and writes them into bench/results.json, beside those of the
benches that were not measured. Exit code 1 where counts, rows or history are wrong.

${names.join('\n')}`);
  process.exit();
}

const wanted = new Set(flags.only?.split(',') ?? BENCHES.map(({ name }) => name));
for (const name of wanted) {
  if (!BENCHES.some((bench) => bench.name === name)) exitWithUsage(`--only: there is no bench "${name}"`);
}
const size = flags.small
  ? SMALL
  : { records: Number(flags.records), rounds: Number(flags.rounds), recordsPerDay: RECORDS_PER_DAY };
if (!(size.records > 0 && size.rounds > 0)) exitWithUsage('--records and --rounds take numbers');

const server = await startBenchServer();
const source = await startSource(size.recordsPerDay);
try {
  const notes = new Map<string, string[]>();
  const site: Site = {
    server,
    source,
    records: size.records,
    rounds: size.rounds,
    small: flags.small,
    note: (bench, text) => void notes.set(bench, [...(notes.get(bench) ?? []), text]),
  };
  const rounds = new Map<string, Figures[]>();
  const measureCase = async ({ benches, rounds: measure }: Case) => {
    if (!benches.some(({ name }) => wanted.has(name))) return;
    for await (const measured of measure(site, wanted)) {
      for (const [name, figures] of Object.entries(measured)) {
        rounds.set(name, [...(rounds.get(name) ?? []), figures]);
        if (!flags.json) console.error(`${name}: ${figuresText(figures)}`);
      }
    }
  };
  // Where no time is judged, side by side: two at once, so that they do not need more than a small machine has.
  const waiting = [...CASES];
  const measureNext = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await measureCase(next);
  };
  await Promise.all(Array.from({ length: flags.small ? 2 : 1 }, measureNext));
  const results = BENCHES.filter(({ name }) => wanted.has(name)).map((bench): Result => {
    const measured = rounds.get(bench.name) ?? [];
    const lines = notes.get(bench.name) ?? [];
    return { bench, rounds: measured, medians: summarize(bench, measured), notes: lines };
  });
  const settings = await settingsOf(site);
  if (flags.small) {
    console.log(`counts, rows and history are right: ${results.map(({ bench }) => bench.name).join(', ')}`);
  } else if (flags.json) console.log(JSON.stringify(resultsDocument(results, settings)));
  else console.log(`\n${machineFacts()}\n\n${resultsText(results)}`);
  if (!flags.small) console.error(`written to ${saveResults(results, settings)}`);
  if (flags.check && !flags.small && !results.every(isReached)) process.exitCode = 1;
} finally {
  await source.stop();
  await server.stop();
}
