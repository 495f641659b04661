// The pipeline beside other ways to load rows by a key, in one run: `npm run bench:peers -- --help`. What each does
// and does not do, and what came of it: bench/README.md.
import { createReadStream, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline as stream } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { machineFacts, median, table } from '../support/figures.ts';
import { exitWithUsage, parseFlags } from '../support/flags.ts';
import { bhavRequest, LAST_TRADING_DAY, startPipeline, tradingDaysBefore } from '../support/pipeline.ts';
import {
  type BenchServer,
  dropDatabase,
  freshDatabase,
  measured,
  migratedDatabase,
  startBenchServer,
  withClient,
} from '../support/postgres.ts';
import { type Source, startSource } from '../support/processes.ts';
import { runCommand } from './command.ts';
import { type Peer, peers } from './peers.ts';
import { CREATE_INDEXES, CREATE_TABLE, fingerprintSql, type RowFiles, writeRows } from './rows.ts';

const RECORDS_PER_DAY = 5_000;
const MB = 1e6;
const OURS = 'eod-pipeline';
const COPY = 'plain COPY';
/** How many times as fast as others the first load is to be, with the same indexes (`--indexes`). */
const TARGETS = { dlt: 1.4, unnest: 1 };

const flags = parseFlags({
  records: { type: 'string', default: '1000000' },
  rows: { type: 'string', multiple: true, default: [] },
  rounds: { type: 'string', default: '3' },
  only: { type: 'string' },
  indexes: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
});
const names = peers.map(({ name }) => name);
if (flags.help) {
  console.log(`npm run bench:peers -- [--records N] [--rows NAME=N]… [--rounds N] [--only NAME,…] [--indexes] [--json]
Loads N bhav copy records (default 1000000, in trading days of ${RECORDS_PER_DAY}) through the pipeline, by a plain COPY and by
each of ${names.join(', ')}, then the same again; medians of the
rounds (default 3). --rows gives one of them fewer records: ${peers
    .filter(({ atMost }) => atMost !== undefined)
    .map(({ name, atMost }) => `${name} gets at most ${atMost}`)
    .join(', ')} unless set otherwise.
--indexes gives the table of the others the two further indexes that market.bhavcopy_cm has.
Install them first: bash bench/peers/install.sh. One that is not installed is left out. Writes bench/peers/results.json,
with --indexes bench/peers/results-indexes.json.`);
  process.exit();
}
const RESULTS = new URL(flags.indexes ? 'results-indexes.json' : 'results.json', import.meta.url);
const createTable = flags.indexes ? `${CREATE_TABLE}; ${CREATE_INDEXES}` : CREATE_TABLE;
const rounds = Number(flags.rounds);
const maxDays = daysOf(Number(flags.records));
if (!(maxDays > 0 && rounds > 0)) exitWithUsage('--records and --rounds take numbers');
const only = flags.only?.split(',');
const unknown = [...(only ?? []), ...flags.rows.map((text) => text.split('=')[0] as string)].find(
  (name) => !names.includes(name),
);
if (unknown !== undefined) exitWithUsage(`no peer is called ${unknown}; there are ${names.join(', ')}`);

function daysOf(records: number): number {
  return Math.max(1, Math.round(records / RECORDS_PER_DAY));
}

function daysFor({ name, atMost }: Peer): number {
  const flag = flags.rows.find((text) => text.startsWith(`${name}=`))?.split('=')[1];
  return Math.min(maxDays, flag === undefined ? daysOf(atMost ?? Infinity) : daysOf(Number(flag)));
}

interface Load {
  readonly seconds: number;
  readonly walBytes: number;
}

/** What one way took in one round. */
interface Measured {
  readonly rows: number;
  readonly first: Load;
  readonly reload: Load | null;
  /** Peak of its processes' resident memory over both loads; null where nothing but Postgres and we take part. */
  readonly peakMb: number | null;
}

const say = (text: string) => console.error(text);
const days = tradingDaysBefore(maxDays);
let referenceUrl = '';
const written = new Map<number, RowFiles>();

/** The rows of so many trading days, from the first day on; written once. */
async function filesFor(server: BenchServer, dayCount: number): Promise<RowFiles> {
  const known = written.get(dayCount);
  if (known !== undefined) return known;
  say(`writing ${(dayCount * RECORDS_PER_DAY).toLocaleString('en')} rows`);
  const files = await writeRows(
    join(server.folder, `rows-${dayCount}`),
    days.slice(0, dayCount),
    RECORDS_PER_DAY,
  );
  written.set(dayCount, files);
  return files;
}

async function fingerprint(url: string, loaded: string, lastDay: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ rows: string; hash: string }>(fingerprintSql(loaded), [lastDay]);
    return `${rows[0]?.rows} rows with hash ${rows[0]?.hash}`;
  });
}

/** What a table must hold, by its last day: what the plain COPY has put there. The same in every round. */
const expected = new Map<string, string>();

async function expectRows(who: string, url: string, loaded: string, lastDay: string): Promise<void> {
  const known = expected.get(lastDay) ?? (await fingerprint(referenceUrl, 'peers.bhavcopy_cm', lastDay));
  expected.set(lastDay, known);
  const actual = await fingerprint(url, loaded, lastDay);
  if (actual !== known) throw new Error(`${who} has loaded ${actual}, which should be ${known}`);
}

async function measureCopy(files: RowFiles): Promise<Measured> {
  return withClient(referenceUrl, async (client) => {
    await client.query(createTable);
    const first = await measured(referenceUrl, () =>
      stream(
        createReadStream(files.csv, { highWaterMark: 256 * 1024 }),
        client.query(copyFrom('copy peers.bhavcopy_cm from stdin (format csv)')),
      ),
    );
    // The table stays to be compared with; its vacuum would come in the way of what is measured next.
    await client.query('alter table peers.bhavcopy_cm set (autovacuum_enabled = off)');
    return { rows: files.rows, first, reload: null, peakMb: null };
  });
}

async function measureOurs(url: string, source: Source): Promise<Measured> {
  const pipeline = await startPipeline({ source }, url);
  const first = await measured(url, () => pipeline.run(bhavRequest(days)));
  const reload = await measured(url, () => pipeline.run(bhavRequest(days, true)));
  const workers = await pipeline.stop();
  const rows = days.length * RECORDS_PER_DAY;
  if (reload.result.unchanged !== rows) throw new Error(`${reload.result.unchanged} of ${rows} unchanged`);
  await expectRows(OURS, url, 'market.bhavcopy_cm', LAST_TRADING_DAY);
  return { rows, first, reload, peakMb: Math.max(...workers.map(({ peakRssMb }) => peakRssMb)) };
}

async function measurePeer(url: string, peer: Peer, server: BenchServer): Promise<Measured> {
  const files = await filesFor(server, daysFor(peer));
  const folder = join(server.folder, 'peer');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  await withClient(url, (client) => client.query(createTable));
  const command = peer.command({ url, files, folder });
  const load = async () => {
    const { result, seconds, walBytes } = await measured(url, () => runCommand(command));
    await expectRows(peer.name, url, 'peers.bhavcopy_cm', files.lastDay);
    return { seconds, walBytes, peakMb: result / MB };
  };
  const first = await load();
  const reload = await load();
  return { rows: files.rows, first, reload, peakMb: Math.max(first.peakMb, reload.peakMb) };
}

const versions: Record<string, string> = {};
const present = peers.filter((peer) => {
  if (only !== undefined && !only.includes(peer.name)) return false;
  try {
    versions[peer.name] = peer.version();
    return true;
  } catch {
    say(`${peer.name} is not installed and left out: bash bench/peers/install.sh`);
    return false;
  }
});

const results = new Map<string, Measured[]>();
/** Peers that failed in a round. */
const failed = new Set<string>();
function note(name: string, round: number, result: Measured): void {
  results.set(name, [...(results.get(name) ?? []), result]);
  const reload = result.reload === null ? '' : `, again ${result.reload.seconds.toFixed(1)} s`;
  say(`round ${round}, ${name}: ${result.rows} rows in ${result.first.seconds.toFixed(1)} s${reload}`);
}

const server = await startBenchServer();
const source = await startSource(RECORDS_PER_DAY);
let postgres = '';
try {
  postgres = await withClient(server.url, async (client) => {
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? '';
  });
  const all = await filesFor(server, maxDays);
  for (let round = 1; round <= rounds; round++) {
    referenceUrl = await freshDatabase(server.url, 'reference');
    note(COPY, round, await measureCopy(all));
    // Each has a database of its own, which goes afterwards, so that its vacuum does not slow the next.
    note(OURS, round, await measureOurs(await migratedDatabase(server.url, 'ours'), source));
    await dropDatabase(server.url, 'ours');
    for (const peer of present.filter(({ name }) => !failed.has(name))) {
      try {
        note(peer.name, round, await measurePeer(await freshDatabase(server.url, 'peer'), peer, server));
      } catch (error) {
        // The others are measured all the same: a run takes an hour.
        failed.add(peer.name);
        say(`round ${round}, ${peer.name} failed and is left out from here on: ${error}`);
        process.exitCode = 1;
      }
      await dropDatabase(server.url, 'peer');
    }
    writeFileSync(RESULTS, `${JSON.stringify(reportNow(), null, 2)}\n`);
  }
} finally {
  await source.stop();
  await server.stop();
}

/** Rows a second and WAL bytes a row of one of the two loads, as medians. */
function loadFigures(name: string, load: 'first' | 'reload') {
  const all = (results.get(name) ?? []).flatMap((result) => {
    const figures = result[load];
    return figures === null ? [] : [{ ...figures, rows: result.rows }];
  });
  if (all.length === 0) return null;
  return {
    rowsPerSecond: Math.round(median(all.map(({ rows, seconds }) => rows / seconds))),
    walBytesPerRow: Math.round(10 * median(all.map(({ rows, walBytes }) => walBytes / rows))) / 10,
  };
}

/** How many times as fast as `name` we are: the median of the rounds' ratios. */
function ratio(name: string, load: 'first' | 'reload'): number | null {
  const ratios = (results.get(OURS) ?? []).flatMap((ours, round) => {
    const theirs = results.get(name)?.[round];
    const [mine, other] = [ours[load], theirs?.[load]];
    if (theirs === undefined || mine === null || other === undefined || other === null) return [];
    return [ours.rows / mine.seconds / (theirs.rows / other.seconds)];
  });
  return ratios.length === 0 ? null : median(ratios);
}

/** The ratio to another that is to be reached; nothing where it was not measured. */
function check(name: keyof typeof TARGETS) {
  const value = ratio(name, 'first');
  const target = TARGETS[name];
  return value === null ? [] : [{ what: `ours ÷ ${name}, first load`, value, target, met: value >= target }];
}
/** All that was measured so far. */
function reportNow() {
  const lines = [...results].map(([name, measuredRounds]) => {
    const peaks = measuredRounds.flatMap(({ peakMb }) => peakMb ?? []);
    return {
      name,
      version: versions[name] ?? null,
      rows: measuredRounds[0]?.rows ?? 0,
      first: loadFigures(name, 'first'),
      reload: loadFigures(name, 'reload'),
      reloadIs: peers.find((peer) => peer.name === name)?.reload ?? null,
      peakMb: peaks.length === 0 ? null : Math.round(Math.max(...peaks)),
      oursOverTheirs: { first: ratio(name, 'first'), reload: ratio(name, 'reload') },
    };
  });
  const checks = flags.indexes ? [...check('dlt'), ...check('unnest')] : [];
  return {
    measuredOn: new Date().toISOString().slice(0, 10),
    machine: machineFacts(),
    postgres,
    records: maxDays * RECORDS_PER_DAY,
    rounds: results.get(OURS)?.length ?? 0,
    lines,
    failed: [...failed],
    checks,
  };
}

const report = reportNow();
const { lines, checks } = report;
if (flags.json) {
  console.log(JSON.stringify(report));
} else {
  const figure = (value: number | null | undefined, digits = 0) =>
    value === null || value === undefined
      ? '–'
      : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  console.log(
    `\n${report.machine}, Postgres ${postgres}; medians of ${rounds} round${rounds === 1 ? '' : 's'}, memory: worst\n`,
  );
  console.log(
    table(
      [
        '',
        'rows',
        'rows/s',
        'again rows/s',
        'WAL B/row',
        'again WAL B/row',
        'memory MB',
        'ours ÷ it',
        'again',
      ],
      lines.map((line) => [
        line.name,
        figure(line.rows),
        figure(line.first?.rowsPerSecond),
        `${figure(line.reload?.rowsPerSecond)}${line.reloadIs === null ? '' : '*'}`,
        figure(line.first?.walBytesPerRow),
        figure(line.reload?.walBytesPerRow, 1),
        figure(line.peakMb),
        figure(line.oursOverTheirs.first, 2),
        figure(line.oursOverTheirs.reload, 2),
      ]),
    ),
  );
  for (const { name, reloadIs } of lines) if (reloadIs !== null) console.log(`* ${name} ${reloadIs}`);
  console.log(`\n${Object.values(versions).join('; ')}\n`);
  if (checks.length > 0) {
    console.log(
      table(
        ['', 'measured', 'target', ''],
        checks.map(({ what, value, target, met }) => [
          what,
          value.toFixed(2),
          `at least ${target}`,
          met ? 'met' : 'MISSED',
        ]),
      ),
    );
  }
}
