/**
 * The tests that have to notice changes to a module, or to the modules of a folder that are not named themselves. Paths
 * are below `src/` and below `test/`; `*.int.test.ts` need a server, so that a mutant takes seconds.
 */
const REGISTERS = 'load/coverage-registers.test.ts';
const ANY_ORDER = 'load/any-order.int.test.ts';
const COMMUTE = 'load/commute.int.test.ts';
/** Also compares what each answer says of the days, over all shapes of all operations. */
const SHAPES = 'load/commute-shapes.int.test.ts';
const FACTS = 'load/answer-facts.int.test.ts';
const OBSERVED = 'load/observed-sessions.int.test.ts';
const PRUNE_ORDER = 'load/prune-order.int.test.ts';
const REPEAT = 'load/repeat-load.int.test.ts';
const WITHDRAWALS = 'load/withdrawals.int.test.ts';
const STATES = 'load/states.int.test.ts';
const ALIASES = 'load/instruments.int.test.ts';
const REJECTS = 'jobs/replay-rejects.int.test.ts';
const RUNS = 'jobs/runs.int.test.ts';

/** @type {Readonly<Record<string, readonly string[]>>} */
export const MODULES = {
  'core/days.ts': ['core/days.test.ts'],
  'calendar/calendar.ts': ['calendar/calendar.test.ts'],
  'calendar/entries.ts': ['calendar/entries.test.ts'],
  'extract/decimals.ts': ['extract/decimals.test.ts'],
  'extract/diagnostics.ts': ['extract/diagnostics.test.ts'],
  'extract/envelope.ts': [
    'extract/answers.test.ts',
    'extract/csv.test.ts',
    'extract/envelope.test.ts',
    'extract/xml.test.ts',
  ],
  'extract/times.ts': ['extract/values.test.ts'],
  'extract/values.ts': ['extract/values.test.ts'],
  'jobs/runs/answered.ts': ['jobs/answered.test.ts', 'jobs/plan.test.ts'],
  'jobs/runs/plan-windows.ts': ['jobs/plan.test.ts'],
  'jobs/worker/failure-policy.ts': ['jobs/failure-policy.test.ts'],

  'load/market/observed-aliases/identity.ts': ['load/identity.test.ts'],
  'load/state/coverage/registers.ts': [REGISTERS],
  'load/state/coverage/freshness.ts': ['load/freshness.test.ts'],
  'load/state/windows/plan.ts': ['jobs/plan.test.ts', STATES],

  'load/market': [ANY_ORDER, COMMUTE, WITHDRAWALS],
  'load/market/merge': [ANY_ORDER, COMMUTE, WITHDRAWALS],
  'load/market/merge/copy-text.ts': ['load/copy-text.test.ts', 'load/copy.int.test.ts'],
  'load/market/fold': [ANY_ORDER, COMMUTE, SHAPES],
  'load/market/checks': ['jobs/quality-data.int.test.ts', 'jobs/previous-close.int.test.ts'],
  'load/market/observed-aliases': [ALIASES],
  'load/market/schema': ['load/schema.int.test.ts'],
  'load/market/repeat-load.ts': [REPEAT],
  'load/market/differences.ts': ['cli/diff.int.test.ts', 'jobs/history.int.test.ts'],
  'load/market/accept-withdrawal.ts': [WITHDRAWALS, PRUNE_ORDER],
  'load/state': [ANY_ORDER, RUNS],
  'load/state/answers': [ANY_ORDER, FACTS, SHAPES],
  'load/state/answers/pruned.ts': [PRUNE_ORDER],
  'load/state/answers/to-fold.ts': [ANY_ORDER, PRUNE_ORDER],
  'load/state/answers/to-replay.ts': ['jobs/replay.int.test.ts'],
  'load/state/coverage': [ANY_ORDER, FACTS, OBSERVED],
  'load/state/coverage/completeness.ts': ['jobs/gaps-data.int.test.ts'],
  'load/state/loads': [ANY_ORDER, COMMUTE, SHAPES],
  'load/state/rejects.ts': [ANY_ORDER, REJECTS],
  'load/state/runs': [RUNS, STATES],
  'load/state/withdrawals.ts': [ANY_ORDER, WITHDRAWALS],
  'load/state/windows': [STATES, ANY_ORDER],
};

/**
 * Few sets of each property: only a mutant that survives takes the time of them all. Nothing is taken away from a set that
 * fails, because that it fails is all that counts.
 */
export const SMALL = {
  REGISTER_RUNS: '300',
  COMMUTE_RUNS: '6',
  EOD_TEST_SETS: '60',
  PRUNE_RUNS: '4',
  SESSION_RUNS: '4',
  EOD_TEST_SHRINK: '0',
  REPEAT_RUNS: '2',
};
