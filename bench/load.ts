// Speed of the pipeline beside a plain COPY: `npm run bench -- --help`. What is measured, and what came of
// it: docs/performance.md.
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline as stream } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { RunRequest } from '../src/load/state/run-request.ts';
import { machineFacts, median, table } from './support/figures.ts';
import { type BenchPipeline, startPipeline } from './support/pipeline.ts';
import {
  type BenchServer,
  dropDatabase,
  freshDatabase,
  measured,
  startBenchServer,
  withClient,
} from './support/postgres.ts';
import { startHelper } from './support/process.ts';

/** What has to be reached; the command fails where it is not. */
const TARGETS = { ratio: 0.3, peakRssMb: 300, reloadOverLoad: 1, reloadWalShare: 0.01 };

const PER_SESSION = 5_000;
const EXCHANGE = 'BSE';
const LAST_SESSION = '2025-10-31';
const MB = 1e6;

const { values: flags } = parseArgs({
  options: {
    records: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (flags.help) {
  console.log(`npm run bench -- [--records N] [--rounds N] [--json]
Loads N bhav copy records (default 200000, in sessions of ${PER_SESSION}) through the whole pipeline, again
unchanged, and by a plain COPY; prints medians of the rounds (default 3). Exit 1 if a target is missed.`);
  process.exit();
}
const sessions = Math.max(1, Math.round(Number(flags.records) / PER_SESSION));
const rounds = Number(flags.rounds);
if (!(sessions > 0 && rounds > 0)) throw new Error('--records and --rounds take numbers');
const records = sessions * PER_SESSION;

interface Round {
  readonly loadSeconds: number;
  readonly loadWalBytes: number;
  readonly reloadSeconds: number;
  readonly reloadWalBytes: number;
  readonly copySeconds: number;
  readonly copyWalBytes: number;
  readonly peakRssMb: number;
  readonly workerCpuSeconds: number;
}

async function measureRound(server: BenchServer, sourcePort: number, name: string): Promise<Round> {
  const url = await freshDatabase(server.url, name);
  const pipeline = await startPipeline(url, sourcePort);
  const load = await measured(url, () => pipeline.run(requestOf(pipeline, false)));
  const reload = await measured(url, () => pipeline.run(requestOf(pipeline, true)));
  if (load.result.inserted !== records || reload.result.unchanged !== records) {
    throw new Error(
      `${records} records were served; inserted ${load.result.inserted}, then unchanged ${reload.result.unchanged}`,
    );
  }
  const worker = await pipeline.stop();
  const copy = await plainCopy(server, url);
  await dropDatabase(server.url, name);
  return {
    loadSeconds: load.seconds,
    loadWalBytes: load.walBytes,
    reloadSeconds: reload.seconds,
    reloadWalBytes: reload.walBytes,
    copySeconds: copy.seconds,
    copyWalBytes: copy.walBytes,
    peakRssMb: worker.peakRssBytes / MB,
    workerCpuSeconds: worker.cpuSeconds,
  };
}

function requestOf({ calendar }: BenchPipeline, again: boolean): RunRequest {
  const days = calendar.lastSessions(EXCHANGE, LAST_SESSION, sessions);
  const from = days[0] as string;
  const target = { operation: 'GetBhavCopyCM', exchange: EXCHANGE, from, to: LAST_SESSION };
  return {
    kind: 'backfill',
    targets: [{ ...target, refetchFrom: again ? from : null }],
    instruments: [],
    options: {},
    live: false,
  };
}

/** The same rows, in the order of the answers, into an unpartitioned table with the same columns and indexes. */
async function plainCopy(server: BenchServer, url: string) {
  const file = join(server.folder, 'rows');
  return withClient(url, async (client) => {
    await stream(
      client.query(
        copyTo(
          'copy (select * from market.bhavcopy_cm order by trade_date, exchange_instrument_id) to stdout',
        ),
      ),
      createWriteStream(file),
    );
    await client.query('create table plain (like market.bhavcopy_cm including defaults including indexes)');
    return measured(url, () =>
      stream(
        createReadStream(file, { highWaterMark: 256 * 1024 }),
        client.query(copyFrom('copy plain from stdin')),
      ),
    );
  });
}

const server = await startBenchServer();
const source = startHelper('source.ts', [String(PER_SESSION)]);
const measuredRounds: Round[] = [];
try {
  const { port } = await source.next<{ port: number }>();
  for (let round = 1; round <= rounds; round++) {
    const figures = await measureRound(server, port, `bench_${round}`);
    measuredRounds.push(figures);
    if (!flags.json) {
      console.error(
        `round ${round}: load ${figures.loadSeconds.toFixed(2)} s, reload ${figures.reloadSeconds.toFixed(2)} s, COPY ${figures.copySeconds.toFixed(2)} s`,
      );
    }
  }
} finally {
  await source.stop();
  await server.stop();
}

const middle = (name: keyof Round) => median(measuredRounds.map((round) => round[name]));
const load = middle('loadSeconds');
const reload = middle('reloadSeconds');
const ratio = median(measuredRounds.map((round) => round.copySeconds / round.loadSeconds));
const peakRssMb = Math.max(...measuredRounds.map((round) => round.peakRssMb));
const walShare = middle('reloadWalBytes') / middle('loadWalBytes');
const checks = [
  {
    what: 'pipeline ÷ COPY',
    value: ratio,
    unit: '×',
    target: `at least ${TARGETS.ratio}`,
    met: ratio >= TARGETS.ratio,
  },
  {
    what: 'peak memory of the worker',
    value: peakRssMb,
    unit: 'MB',
    target: `below ${TARGETS.peakRssMb}`,
    met: peakRssMb < TARGETS.peakRssMb,
  },
  {
    what: 'identical reload ÷ first load, time',
    value: reload / load,
    unit: '×',
    target: `at most ${TARGETS.reloadOverLoad}`,
    met: reload / load <= TARGETS.reloadOverLoad,
  },
  {
    what: 'identical reload ÷ first load, WAL',
    value: walShare,
    unit: '×',
    target: `at most ${TARGETS.reloadWalShare}`,
    met: walShare <= TARGETS.reloadWalShare,
  },
];

if (flags.json) {
  console.log(JSON.stringify({ machine: machineFacts(), records, sessions, rounds: measuredRounds, checks }));
} else {
  const row = (what: string, seconds: number, wal: number) => [
    what,
    seconds.toFixed(2),
    Math.round(records / seconds).toLocaleString('en'),
    (wal / MB).toFixed(2),
  ];
  console.log(
    `\n${machineFacts()}\n${records.toLocaleString('en')} records in ${sessions} sessions; medians of ${rounds} rounds\n`,
  );
  console.log(
    table(
      ['', 'seconds', 'records/s', 'WAL MB'],
      [
        row('pipeline, first load', load, middle('loadWalBytes')),
        row('pipeline, identical reload', reload, middle('reloadWalBytes')),
        row('plain COPY', middle('copySeconds'), middle('copyWalBytes')),
      ],
    ),
  );
  console.log(
    table(
      ['', 'measured', 'target', ''],
      checks.map((check) => [
        check.what,
        `${check.value.toPrecision(3)} ${check.unit}`,
        check.target,
        check.met ? 'met' : 'MISSED',
      ]),
    ),
  );
  console.log(`CPU of the worker process: ${middle('workerCpuSeconds').toFixed(2)} s for both loads`);
}
process.exitCode = checks.every((check) => check.met) ? 0 : 1;
