const MERGE = 'src/load/merge/merge-sql.ts';
const LOAD_WINDOW = 'src/load/load-window.ts';
const WRITE_COVERAGE = 'src/state/coverage/coverage.ts';
const COVERAGE = 'test/state/coverage/coverage-registers.int.test.ts';
const PAST = 'test/load/schema/past-states.int.test.ts';
const MERGING = 'test/load/merge/merge.int.test.ts';
const ANY_ORDER = 'test/load/fold/any-order.int.test.ts';

export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly test: string;
}

/**
 * Changes to `src` that a test has to notice, mostly to SQL and to what only several loads together show. Each is one
 * replacement in a file, and the test file that must fail then.
 */
export const NAMED: readonly Mutant[] = [
  {
    name: 'moment-without-microsecond',
    file: MERGE,
    from: "t.last_changed_at + interval '1 microsecond'",
    to: 't.last_changed_at',
    test: PAST,
  },
  {
    name: 'relisted-from-first-revision',
    file: MERGE,
    from: 'order by w.revision desc limit 1',
    to: 'order by w.revision limit 1',
    test: PAST,
  },
  {
    name: 'relisted-at-a-moment-that-is-taken',
    file: MERGE,
    from: "greatest(statement_timestamp(), w.valid_to + interval '1 microsecond')",
    to: 'statement_timestamp()',
    test: PAST,
  },
  {
    name: 'stale-values-win',
    file: MERGE,
    from: "then 'stale' else 'update' end as _action",
    to: "then 'update' else 'update' end as _action",
    test: MERGING,
  },
  {
    name: 'first-of-duplicates-wins',
    file: MERGE,
    from: 's.source_saved_at desc nulls last, s._ord desc)',
    to: 's.source_saved_at desc nulls last, s._ord)',
    test: MERGING,
  },
  {
    name: 'day-compared-with-what-it-has',
    file: 'src/state/withdrawals.ts',
    from: "'accepted' then w.remaining_rows else w.max_rows end",
    to: "'accepted' then w.remaining_rows else 0 end",
    test: 'test/load/withdrawals.int.test.ts',
  },
  {
    name: 'emptied-day-withdrawn',
    file: MERGE,
    from: 'is_accepted or (not is_emptied',
    to: 'is_accepted or (true',
    test: 'test/load/withdrawals.int.test.ts',
  },
  {
    name: 'no-look-at-later-loads',
    file: LOAD_WINDOW,
    from: '!(await hasLaterOrOwnLoad(tx, scope, load.position))',
    to: 'true',
    test: ANY_ORDER,
  },
  {
    name: 'accepted-days-are-not-folded-so',
    file: 'src/load/fold/fold.ts',
    from: 'acceptedDay.position === position ? [acceptedDay.day] : []',
    to: '[]',
    test: 'test/load/withdrawals.int.test.ts',
  },
  {
    name: 'unlisted-rows-stay-after-a-fold',
    file: 'src/load/fold/fold.ts',
    from: 'if (decided === null) return',
    to: 'if (decided !== undefined) return',
    test: ANY_ORDER,
  },
  {
    name: 'read-again-and-not-replaced',
    file: WRITE_COVERAGE,
    from: 'where (\n       excluded.last_position >= ',
    to: 'where (\n       excluded.last_position > ',
    test: COVERAGE,
  },
  {
    name: 'suspicious-once-and-never-after',
    file: WRITE_COVERAGE,
    from: 'suspicious_position = greatest(excluded.suspicious_position, stored.suspicious_position)',
    to: 'suspicious_position = excluded.suspicious_position',
    test: COVERAGE,
  },
  {
    name: 'first-of-those-that-emptied-a-day',
    file: 'migrations/repeatable/coverage.sql',
    from: "max(response.position) FILTER (WHERE withdrawal.state IN ('withdrawn', 'accepted'))",
    to: "min(response.position) FILTER (WHERE withdrawal.state IN ('withdrawn', 'accepted'))",
    test: 'test/state/responses/response-facts.int.test.ts',
  },
  {
    name: 'unclear-bonus-beside-clear-split',
    file: 'src/extract/corporate-actions/purpose.ts',
    from: "new Set(['other', 'split', 'bonus', 'consolidation'])",
    to: "new Set(['other', 'split', 'consolidation'])",
    test: 'test/extract/corporate-actions/purpose.test.ts',
  },
  {
    name: 'body-cap-one-chunk-late',
    file: 'src/extract/body.ts',
    from: 'if (size + chunk.length > cap)',
    to: 'if (size > cap)',
    test: 'test/extract/client.test.ts',
  },
  {
    name: 'two-attempts-for-http-500',
    file: 'src/jobs/policy/failure-policy.ts',
    from: 'fits: (status) => status >= 500,\n    attempts: Number.POSITIVE_INFINITY,',
    to: 'fits: (status) => status >= 500,\n    attempts: 2,',
    test: 'test/jobs/policy/failure-policy.test.ts',
  },
  {
    name: 'requeue-only-if-the-queue-is-empty',
    file: 'src/jobs/worker/chores.ts',
    from: 'const mayBeLost = isThorough || (await lacksJobs(context));',
    to: 'const counts = await context.queues.windows.backfill.getJobCounts(); const mayBeLost = !Object.values(counts).some((jobs) => jobs > 0);',
    test: 'test/jobs/worker/lost-queue.slow.test.ts',
  },
];
