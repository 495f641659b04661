import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportTable } from '../../src/export/export-table.ts';
import { ignoreEvents } from '../../src/jobs/events/decide-event.ts';
import { readGaps } from '../../src/jobs/runs/read-gaps.ts';
import { listEvents } from '../../src/load/corporate-events.ts';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { readCompleteness } from '../../src/state/coverage/completeness.ts';
import { readIssues } from '../../src/state/issues.ts';
import { importInto, newFile, openStore } from '../support/import-support.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty';
const CF_CA =
  'SYMBOL,COMPANY NAME,SERIES,PURPOSE,FACE VALUE,EX-DATE,RECORD DATE,BOOK CLOSURE START DATE,BOOK CLOSURE END DATE';

const SHARES = 1000;
const DAYS = Array.from({ length: 60 }, (_, at) => new Date(Date.UTC(2024, 0, 1 + at)))
  .filter((day) => day.getUTCDay() % 6 !== 0)
  .map((day) => day.toISOString().slice(0, 10));
const isinOf = (at: number) => `INE${String(at).padStart(6, '0')}011`;

const tradingDay = (day: string) =>
  newFile(`${day}.csv`, [
    HEADER,
    ...Array.from(
      { length: SHARES },
      (_, at) =>
        `${day},${day},CM,NSE,STK,${at + 1},${isinOf(at)},S${at},EQ,SHARE ${at},100,101,99,100,100,100,10,1000,3,F1,1`,
    ),
  ]);

/** A list with events of few of the shares: their factors are joined with all prices. Each third event needs a person. */
function list() {
  const lines = Array.from({ length: 300 }, (_, at) => {
    const purpose = at % 3 === 0 ? 'Rights 1:9 @ Premium Rs 50' : `Bonus ${1 + (at % 4)}:1`;
    const day = `${String(2 + (at % 27)).padStart(2, '0')}-${at < 150 ? 'Jan' : 'Feb'}-2024`;
    return `S${at % SHARES},SHARE,EQ,${purpose},10,${day},${day},-,-`;
  });
  return newFile('CF-CA.csv', [CF_CA, ...lines]);
}

interface PlanNode {
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows all steps of a plan have looked at together. */
function rowsLookedAt(node: PlanNode): number {
  const removed = ['Filter', 'Join Filter', 'Index Recheck'] as const;
  const each = removed.reduce((sum, by) => sum + (node[`Rows Removed by ${by}`] ?? 0), node['Actual Rows']);
  return (node.Plans ?? []).reduce((sum, step) => sum + rowsLookedAt(step), each * node['Actual Loops']);
}

/** A store whose statements say how many rows each has looked at. */
async function openWatched(url: string) {
  const context = await openStore(url);
  let looked = 0;
  context.db.pool.on('connect', (client) => {
    client.on('notice', ({ message = '' }) => {
      const [, json] = /^duration: [^{]*plan:\s*(\{.*)$/s.exec(message) ?? [];
      if (json !== undefined) looked += rowsLookedAt((JSON.parse(json) as { Plan: PlanNode }).Plan);
    });
    // Sent before whatever the connection is opened for.
    void client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on;
      set auto_explain.log_timing = off; set auto_explain.log_format = json; set auto_explain.log_level = notice`);
  });
  return {
    ...context,
    /** How many rows the statements of a task look at. */
    count: async (task: () => Promise<unknown>) => {
      looked = 0;
      await task();
      return looked;
    },
  };
}

type Watched = Awaited<ReturnType<typeof openWatched>>;

const views = async ({ db }: Watched) =>
  (
    await db.pool.query<{ name: string }>(
      "select format('%I.%I', schemaname, viewname) as name from pg_views where schemaname = 'market' order by 1",
    )
  ).rows.map(({ name }) => name);

/** What people do after an import, by name. */
async function questions(store: Watched): Promise<[string, () => Promise<unknown>][]> {
  const range = { from: DAYS[0] as string, to: DAYS.at(-1) as string };
  const limits = { timeoutMs: 0, signal: new AbortController().signal };
  const file = join(temporaryFolder(), 'rows');
  const exported = (table: string) => () =>
    exportTable(
      store.db,
      { table, format: 'csv', doubles: true, fileFor: () => file, onPartial: () => undefined },
      limits,
    );
  const selected = (of: string) => () => store.db.pool.query(`select * from ${of}`);
  return [
    ['export bhavcopy_cm', exported('bhavcopy_cm')],
    ['export prices_adjusted', exported('prices_adjusted')],
    ['total returns', selected("market.adjusted_prices('2024-12-31', true)")],
    ['one share', selected("market.prices_adjusted where symbol = 'S9'")],
    ...(await views(store)).map((name): [string, () => Promise<unknown>] => [name, selected(name)]),
    ['etl.completeness', selected('etl.completeness')],
    ['completeness', () => readCompleteness(store, { expected: [], others: true, ...range })],
    ['gaps', () => readGaps(store, {})],
    ['reconcile', () => checkQuality(store, range)],
    ['issues', () => readIssues(store.db.drizzle, {}, 100)],
    ['events', () => listEvents(store.db.pool, { statuses: ['needs_review'] }, 100)],
  ];
}

test('after an import, and after decisions, each question looks at no more rows than once all tables are analyzed', async () => {
  const context = await openStore();
  const url = context.config.DATABASE_URL as string;
  // The second import is of many more rows than the statistics of the first know of.
  await importInto(context, DAYS.slice(0, 2).map(tradingDay));
  await importInto(context, [...DAYS.slice(2).map(tradingDay), list()]);
  const { rows } = await context.db.pool.query<{ setting: string }>('show autovacuum');
  expect(rows).toEqual([{ autovacuum: 'off' }]);
  const store = await openWatched(url);
  const undecided = await listEvents(store.db.pool, { statuses: ['needs_review'] }, 10);
  await ignoreEvents(
    context,
    undecided.events.map(({ id }) => id),
  );
  const allQuestions = await questions(store);
  // Once before, because the first gaps write trading days, and the first checks findings.
  for (const [, ask] of allQuestions.filter(([name]) => ['gaps', 'reconcile'].includes(name))) await ask();
  const before = new Map<string, number>();
  for (const [name, ask] of allQuestions) before.set(name, await store.count(ask));
  await context.db.pool.query('analyze');
  for (const [name, ask] of allQuestions) {
    const after = await store.count(ask);
    expect(before.get(name), name).toBeLessThan(1.2 * after + 1_000);
  }
});
