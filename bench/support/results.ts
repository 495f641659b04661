import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Bench, type Figures, isMet, type Reach, type Site } from './bench.ts';
import { median, table } from './figures.ts';
import { withClient } from './postgres.ts';

/** What became of a bench. */
export interface Result {
  readonly bench: Bench;
  readonly medians: Figures;
  readonly rounds: readonly Figures[];
  readonly notes: readonly string[];
}

/** The median of every figure; of figures that may not grow beyond something the worst. */
export function summarize({ reach }: Bench, rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {});
  const worst = new Set(reach.flatMap((limit) => ('atMost' in limit ? [limit.figure] : [])));
  return Object.fromEntries(
    names.map((name) => {
      const values = rounds.map((figures) => figures[name] ?? Number.NaN);
      return [name, worst.has(name) ? Math.max(...values) : median(values)];
    }),
  );
}

export const isReached = ({ bench, medians }: Result) => bench.reach.every((reach) => isMet(reach, medians));

/** Short for people: `0.834`, `1,234,567`. */
function short(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

/** All figures in one line. */
export const figuresText = (figures: Figures) =>
  Object.entries(figures)
    .map(([name, value]) => `${name} ${short(value)}`)
    .join(', ');

const reachText = (reach: Reach) =>
  'atLeast' in reach ? `≥ ${short(reach.atLeast)}` : `≤ ${short(reach.atMost)}`;

/** The table of the results, and below it every figure. */
export function resultsText(results: readonly Result[]): string {
  const lines = results.flatMap(({ bench, medians }) =>
    bench.reach.map((reach, at) => [
      at === 0 ? bench.name : '',
      reach.figure,
      short(medians[reach.figure] ?? Number.NaN),
      reachText(reach),
      isMet(reach, medians) ? 'met' : 'missed',
    ]),
  );
  const details = results.map(({ bench, medians, rounds }) => {
    const beside = bench.against === null ? '' : ` – beside ${bench.against}`;
    return `${bench.name}: ${bench.what}${beside}; ${rounds.length} rounds\n  ${figuresText(medians)}`;
  });
  return `${table(['bench', 'figure', 'measured', 'reach', ''], lines)}\n\n${details.join('\n')}`;
}

/** What it was measured on, and how much. */
export async function settingsOf({ server, source, records, rounds, small }: Site) {
  const result = await withClient(server.url, (client) =>
    client.query<{ version: string; changed: Record<string, string> }>(
      `select current_setting('server_version') as version,
              (select coalesce(jsonb_object_agg(name, setting), '{}') from pg_settings
                where source in ('configuration file', 'command line')) as changed`,
    ),
  );
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: {
      processors: cpus().length,
      model: cpus()[0]?.model ?? 'unknown',
      memoryGb: Math.round(totalmem() / 1e9),
    },
    node: process.versions.node,
    postgres: result.rows[0]?.version ?? 'unknown',
    postgresSettings: result.rows[0]?.changed ?? {},
    records,
    perSession: source.recordsPerDay,
    rounds,
    small,
  };
}

/** Each bench with its settings, because benches may be measured one by one. */
export function resultsDocument(results: readonly Result[], settings: object): Record<string, object> {
  return Object.fromEntries(
    results.map((result) => {
      const { bench, medians, rounds, notes } = result;
      const { what, against, reach } = bench;
      const text = notes.length === 0 ? {} : { notes };
      return [
        bench.name,
        { what, against, reach, met: isReached(result), medians, rounds, ...text, settings },
      ];
    }),
  );
}

const FILE = fileURLToPath(new URL('../results.json', import.meta.url));

/** Writes the results beside those of other benches that were measured before. @returns the file. */
export function saveResults(results: readonly Result[], settings: object): string {
  let before: Record<string, object> = {};
  try {
    before = JSON.parse(readFileSync(FILE, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const all = { ...before, ...resultsDocument(results, settings) };
  writeFileSync(FILE, `${JSON.stringify(all, null, 2)}\n`);
  return FILE;
}
