import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countIssues, readIssues } from '../../src/state/issues.ts';
import { countOpenRejects } from '../../src/state/rejects.ts';
import { newRun, newWindow, openStore } from '../load/support.ts';
import { forAllAsync } from '../support/for-all.ts';

interface Reject {
  readonly operation: string;
  readonly exchange: string;
  readonly day: string;
  /** The response that has it; a later one about the day, if it is good, resolves it. */
  readonly response: number;
  readonly isAccepted: boolean;
}

const ALL = 1_000;
const day = fc.constantFrom('2025-09-01', '2025-09-02', '2025-09-03');
const exchange = fc.constantFrom('NSE', 'BSE');
const operation = fc.constantFrom('GetBhavCopyCM', 'GetCircuitBreakers');

/** What is stored: rejects of responses 1 to 9, of which some are good ones of a day and exchange, and the rest. */
const facts = fc.record({
  rejects: fc.array(
    fc.record({
      operation,
      exchange,
      day,
      response: fc.integer({ min: 1, max: 9 }),
      isAccepted: fc.boolean(),
    }),
  ),
  good: fc.array(fc.record({ operation, exchange, day, response: fc.integer({ min: 1, max: 9 }) }), {
    maxLength: 5,
  }),
  withdrawals: fc.array(
    fc.record({
      exchange,
      day: fc.option(day),
      gone: fc.integer({ min: 1, max: 900 }),
      state: fc.constantFrom('withheld', 'accepted', 'outdated', 'withdrawn'),
    }),
  ),
  findings: fc.uniqueArray(
    fc.record({
      exchange,
      day,
      check: fc.constantFrom('a', 'b'),
      instrument: fc.constantFrom('I1', 'I2', 'I3'),
      severity: fc.constantFrom('error', 'warning', 'info'),
      isResolved: fc.boolean(),
      isAccepted: fc.boolean(),
    }),
    { selector: (finding) => [finding.exchange, finding.day, finding.check, finding.instrument].join() },
  ),
});

type Facts = typeof facts extends fc.Arbitrary<infer Of> ? Of : never;

const at = (response: number) => `2025-09-10T10:0${response}:00Z`;

const PRIORITIES = { error: 1, warning: 2, info: 3 } as const;

/** The issues as a plain list: kind, priority, exchange, day, items and effect. */
function expected({ rejects, good, withdrawals, findings }: Facts) {
  const isOpen = (reject: Reject) =>
    !reject.isAccepted &&
    !good.some(
      (other) =>
        other.response > reject.response &&
        [other.operation, other.exchange, other.day].join() ===
          [reject.operation, reject.exchange, reject.day].join(),
    );
  const counted = new Map<string, { line: (string | number | null)[]; items: number }>();
  const add = (...line: (string | number | null)[]) => {
    const known = counted.get(line.join());
    counted.set(line.join(), { line, items: (known?.items ?? 0) + 1 });
  };
  for (const reject of rejects.filter(isOpen))
    add('reject', 1, reject.operation, reject.exchange, reject.day);
  const open = findings.filter(({ isResolved, isAccepted }) => !isResolved && !isAccepted);
  for (const finding of open) {
    const same = open.filter(
      (other) =>
        [other.exchange, other.day, other.check].join() ===
        [finding.exchange, finding.day, finding.check].join(),
    );
    const priority = Math.min(...same.map(({ severity }) => PRIORITIES[severity]));
    add('finding', priority, finding.check, finding.exchange, finding.day);
  }
  const grouped = [...counted.values()].map(({ line, items }) => [...line, items, items]);
  const withheld = withdrawals
    .filter(({ state }) => state === 'withheld')
    .map((withdrawal) => [
      'withdrawal',
      1,
      'bhavcopy_cm',
      withdrawal.exchange,
      withdrawal.day,
      1,
      withdrawal.gone,
    ]);
  return [...grouped, ...withheld].map((line) => line.join()).sort();
}

test('issues are the open rejects by day, withheld withdrawals and open findings by check and day, as a plain list has them', async () => {
  const store = await openStore();
  await forAllAsync([facts], { numRuns: 20 }, async (stored) => {
    await store.pool.query('truncate etl.rejected_records, etl.responses, etl.withdrawals, etl.findings');
    await store.pool.query(
      `insert into etl.responses (operation, exchange, from_date, to_date, instruments, variant, is_filtered, position, is_believed, window_id, run_id, params, fetched_at, called_on)
         select r->>'operation', r->>'exchange', (r->>'day')::date, (r->>'day')::date, '{}', '', false, (r->>'at')::timestamptz - n * interval '1 ms', true, 0, 0, '{}', now(), '2025-09-10'
           from jsonb_array_elements($1) with ordinality as g(r, n)`,
      [JSON.stringify(stored.good.map((row) => ({ ...row, at: at(row.response) })))],
    );
    await store.pool.query(
      `insert into etl.rejected_records (run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, problems, first_seen_at, last_seen_at, accepted_at)
         select 1, 1, r->>'operation', r->>'exchange', n, (r->>'day')::date, (r->>'day')::date, n::text, '[{"path": "x", "message": "is wrong"}]', (r->>'at')::timestamptz, (r->>'at')::timestamptz, case when (r->>'isAccepted')::boolean then now() end
           from jsonb_array_elements($1) with ordinality as g(r, n)`,
      [JSON.stringify(stored.rejects.map((reject) => ({ ...reject, at: at(reject.response) })))],
    );
    await store.pool.query(
      `insert into etl.withdrawals (load_id, window_id, run_id, operation, exchange, table_name, day, state, unlisted_rows, max_rows, remaining_rows, position, rows)
         select 1, 1, 1, 'GetBhavCopyCM', w->>'exchange', 'bhavcopy_cm', (w->>'day')::date, w->>'state', (w->>'gone')::int, 900, 0, now(), '[]'
           from jsonb_array_elements($1) as w`,
      [JSON.stringify(stored.withdrawals)],
    );
    await store.pool.query(
      `insert into etl.findings ("check", severity, operation, exchange, date, instrument, resolved_at, accepted_at)
         select f->>'check', f->>'severity', 'GetBhavCopyCM', f->>'exchange', (f->>'day')::date, f->>'instrument', case when (f->>'isResolved')::boolean then now() end, case when (f->>'isAccepted')::boolean then now() end
           from jsonb_array_elements($1) as f`,
      [JSON.stringify(stored.findings)],
    );
    const { issues, counts } = await readIssues(store.drizzle, {}, ALL);
    const namedIssues = issues.map((issue) => ({
      ...issue,
      name: issue.kind === 'reject' ? issue.operation : issue.subject,
    }));
    const lines = namedIssues.map((issue) =>
      [issue.kind, issue.priority, issue.name, issue.exchange, issue.from, issue.items, issue.effect].join(),
    );
    expect(lines.toSorted()).toEqual(expected(stored));
    expect(counts).toEqual(await countIssues(store.drizzle));
    expect(counts.reduce((sum, count) => sum + count.issues, 0)).toBe(issues.length);
    // The first ones are the most important ones, then the newest, then the largest.
    const order = (issue: (typeof issues)[number]) =>
      `${issue.priority} ${99_999_999 - Number((issue.to ?? '9999-99-99').replaceAll('-', ''))} ${100_000 - (issue.effect ?? 0)}`;
    expect(issues.map(order)).toEqual(issues.map(order).toSorted());
    const open = await countOpenRejects(store.drizzle);
    const ofRejects = counts.find(({ kind }) => kind === 'reject')?.items ?? 0;
    expect(open.reduce((sum, group) => sum + group.rejects, 0)).toBe(ofRejects);
    const ofBse = await readIssues(store.drizzle, { kinds: ['finding', 'reject'], exchanges: ['BSE'] }, ALL);
    expect(ofBse.issues).toEqual(
      issues.filter((issue) => issue.exchange === 'BSE' && ['finding', 'reject'].includes(issue.kind)),
    );
  });
});

test('of suspicious responses to the same request the last one is listed, until one that is not suspicious', async () => {
  const store = await openStore();
  const runId = await newRun(store);
  const respond = async (second: number, suspicious: string | null) => {
    const windowId = await newWindow(store, runId, 'loaded');
    await store.pool.query('update etl.windows set suspicious = $2, unsettled = $2 where id = $1', [
      windowId,
      suspicious,
    ]);
    await store.pool.query(
      `insert into etl.responses (operation, exchange, from_date, to_date, instruments, variant, is_filtered, position, is_believed, window_id, run_id, params, fetched_at, called_on)
         values ('GetBhavCopyCM', 'NSE', '2025-01-01', '2025-01-01', '{}', '', false, $1, true, $2, $3, '{}', now(), '2025-01-01')`,
      [at(second), windowId, runId],
    );
  };
  const listed = async () => (await readIssues(store.drizzle, {}, ALL)).issues.map(({ text }) => text);
  await respond(1, 'count says 293');
  await respond(2, 'count says 294');
  expect(await listed()).toEqual(['count says 294']);
  await respond(3, null);
  expect(await listed()).toEqual([]);
});
