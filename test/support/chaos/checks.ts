import { tables } from '../../../src/operations/registry.ts';
import { query } from '../query.ts';
import type { SandboxFigures } from './eod.ts';

const COUNTS = ['fetched', 'inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'rejected'] as const;
const SUMS = [...COUNTS, 'requests', 'bytes', 'withdrawn'] as const;

/** Imports that an outage ended, and that were begun again with the same files: the last one counts. */
const BEGUN_AGAIN = `(select i.id from etl.runs i where i.kind = 'import' and i.finished_at is not null
  and exists (select from etl.runs later where later.kind = 'import' and later.id > i.id))`;

/** Each check is a statement that finds nothing where all is well. */
const CHECKS: readonly { readonly problem: string; readonly statement: string }[] = [
  {
    problem: 'windows without a good end',
    statement: `select id::int, state, operation, from_date::text, error from etl.windows
      where (state not in ('loaded', 'empty', 'skipped', 'split') or finished_at is null) and run_id not in ${BEGUN_AGAIN}`,
  },
  {
    problem: 'windows whose counts do not add up',
    statement: `select id::int from etl.windows
      where fetched <> inserted + updated + unchanged + stale + duplicate + rejected`,
  },
  {
    problem: 'runs that did not complete, or whose totals are not the sums of their windows',
    statement: `select r.id::int, r.state, r.error from etl.runs r cross join lateral (
        select ${SUMS.map((name) => `coalesce(sum(${name}), 0) as ${name}`).join(', ')}
          from etl.windows where run_id = r.id) as sums
      where (r.state <> 'completed' and r.id not in ${BEGUN_AGAIN}) or r.finished_at is null
        or row(${SUMS.map((name) => `r.${name}`).join(', ')}) is distinct from row(${SUMS.map((name) => `sums.${name}`).join(', ')})`,
  },
  {
    problem: 'split windows without successors, or successors of a window that was not split',
    statement: `select w.id::int, w.state from etl.windows w
      where (w.state = 'split') <> exists (select from etl.windows child where child.parent_id = w.id)`,
  },
  {
    problem: 'rows that an unchanged source has changed',
    statement: `select sum(updated)::int as updated, sum(stale)::int as stale from etl.windows
      having sum(updated) + sum(stale) > 0`,
  },
  ...tables.map(({ name }) => ({
    problem: `rows of market.${name} that were loaded as a change`,
    statement: `select count(*)::int as rows from market."${name}" where revision <> 1 having count(*) > 0`,
  })),
  {
    problem: 'states that are missing between the first and the last',
    statement: `select count(*)::int as loads, max(state)::int as last from etl.loads having count(*) <> max(state)`,
  },
  ...tables.map(({ name }) => ({
    problem: `rows of market.${name} whose load was not committed`,
    statement: `select count(*)::int as rows from market."${name}" t
      where not exists (select from etl.loads l where l.id = t.load_id) having count(*) > 0`,
  })),
  {
    problem: 'rows that were inserted twice or not at all',
    statement: `select inserted::int, rows::int from (select sum(inserted) as inserted from etl.windows) i,
        (select ${tables.map(({ name }) => `(select count(*) from market."${name}")`).join(' + ')} as rows) r
      where inserted <> rows`,
  },
];

/** Looks for anything that does not add up in a database after its load. */
export async function checkBooks(url: string): Promise<string[]> {
  const problems: string[] = [];
  for (const { problem, statement } of CHECKS) {
    const rows = await query(url, statement);
    if (rows.length > 0) {
      problems.push(`${problem} (${rows.length}): ${JSON.stringify(rows.slice(0, 5))}`);
    }
  }
  return problems;
}

/** The hours in which the source got more calls than the budget has counted, or than the quota allows. */
export async function checkBudget(
  url: string,
  { byHour, byDiagnostic }: SandboxFigures,
  callsPerHour: number,
): Promise<string[]> {
  const budget = await query<{ hour: string; calls: number }>(
    url,
    `select to_char(hour at time zone 'Asia/Kolkata', 'YYYY-MM-DD"T"HH24') as hour, sum(calls)::int as calls
       from etl.call_budget group by 1`,
  );
  const granted = new Map(budget.map(({ hour, calls }) => [hour, calls]));
  return [
    ...Object.entries(byHour).flatMap(([hour, calls]) => [
      ...(calls > (granted.get(hour) ?? 0) ? [`${hour}: ${calls} calls, ${granted.get(hour)} granted`] : []),
      ...(calls > callsPerHour ? [`${hour}: ${calls} calls are more than the quota of ${callsPerHour}`] : []),
    ]),
    ...Object.entries(byDiagnostic)
      .filter(([line]) => line.includes('per hour'))
      .map(([line, times]) => `the source responded ${times} times: ${line}`),
  ];
}

/** Growth of a process that only keeps working: the last third against the first, after its start. */
export function checkMemory(samples: readonly number[], bounds: MemoryBounds): MemoryFigures {
  const warm = samples.slice(Math.floor(samples.length / 5));
  const third = Math.max(1, Math.floor(warm.length / 3));
  const first = median(warm.slice(0, third));
  const last = median(warm.slice(-third));
  const most = Math.max(...samples);
  const problems = [
    ...(last > first * (1 + bounds.growth) ? [`memory grew from ${first} MB to ${last} MB`] : []),
    ...(most > bounds.megabytes ? [`memory reached ${most} MB`] : []),
  ];
  return { first, last, most: Math.round(most), problems };
}

export interface MemoryBounds {
  /** Share by which the last third may exceed the first. */
  readonly growth: number;
  readonly megabytes: number;
}

export interface MemoryFigures {
  /** Unit: MB. */
  readonly first: number;
  readonly last: number;
  readonly most: number;
  readonly problems: readonly string[];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0);
}
