import { beforeEach, describe, expect, test } from 'vitest';
import { readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { startServer } from '../../support/http-server.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';

const NAME = 'GetSectoralClassification';

/** A Wednesday evening in India, after publication: the same for the pipeline and the source. */
const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };

const WEEK = { from: '2025-09-01', to: '2025-09-05', operations: [NAME] };

const { windows } = operationNamed(NAME);

const SECTORS = windows.per === 'range' ? (windows.parts?.values ?? []) : [];

const rowsOf = async <Row>({ db }: Pipeline, query: string): Promise<Row[]> =>
  (await db.pool.query(query)).rows;

describe('at a source of companies that move', () => {
  /** The sector of each company, and lines that are sent instead of the response about a sector. */
  const sectors = new Map<string, string>();
  const lines = new Map<string, string>();
  /** What a range of days selects. */
  const changed: string[] = [];
  const requests: string[] = [];
  let pipeline: Pipeline;

  beforeEach(async () => {
    sectors.clear();
    lines.clear();
    changed.length = 0;
    requests.length = 0;
    const record = ([symbol, Sector]: [string, string]) => ({
      Symbol: symbol,
      ScripCode: 500_000 + symbol.charCodeAt(0),
      CompanyName: symbol,
      AllotedFrom: '03-31-2022',
      Sector,
      ISIN: `INE${symbol}`,
    });
    const url = await startServer((request, response) => {
      const { searchParams } = new URL(`http://source${request.url}`);
      const sector = searchParams.get('sector');
      requests.push(sector ?? 'days');
      const listed = [...sectors].filter(([symbol, itsSector]) =>
        sector === null ? changed.includes(symbol) : itsSector === sector,
      );
      response.end(lines.get(sector ?? '') ?? JSON.stringify({ Value: listed.map(record) }));
    });
    pipeline = await openPipeline({ sourceUrl: url, clock, settings: { EOD_ATTEMPTS: '1' } });
  });

  const run = () => runToEnd(pipeline, backfill({ ...WEEK, exchanges: ['BSE'], force: true }));
  const stored = () =>
    rowsOf(pipeline, 'select symbol, sector from market.sectoral_classification order by symbol');

  test('a company that leaves a sector for another is updated, and never withdrawn', async () => {
    sectors.set('A', 'Power').set('B', 'Power').set('C', 'Textiles');
    expect(await run()).toMatchObject({ inserted: 3, withdrawn: 0 });
    sectors.set('B', 'Textiles');
    expect(await run()).toMatchObject({ updated: 1, withdrawn: 0 });
    expect(await stored()).toEqual([
      { symbol: 'A', sector: 'Power' },
      { symbol: 'B', sector: 'Textiles' },
      { symbol: 'C', sector: 'Textiles' },
    ]);
    const gone = await rowsOf(pipeline, 'select from market_history.sectoral_classification where withdrawn');
    expect(gone).toEqual([]);
  });

  test('a sector that a response shows is requested by the next run', async () => {
    sectors.set('A', 'Power').set('B', 'Space Mining').set('C', 'Space Mining');
    changed.push('B');
    expect(await run()).toMatchObject({ state: 'completed', inserted: 2 });
    expect(requests).toHaveLength(SECTORS.length + 1);
    expect(await run()).toMatchObject({ state: 'completed', inserted: 1 });
    expect((await stored()).map((row) => (row as { symbol: string }).symbol)).toEqual(['A', 'B', 'C']);
    expect(requests.filter((sector) => sector === 'Space Mining')).toHaveLength(1);
  });

  test('a sector without a response is a gap until it has one', async () => {
    sectors.set('A', 'Power').set('B', 'Textiles');
    lines.set('Power', 'A line that nobody knows.');
    const gapsNow = async () =>
      (await readGaps(pipeline, { operations: [operationNamed(NAME)], exchanges: ['BSE'] })).gaps;
    expect((await gapsNow()).map(({ reason }) => reason)).toEqual(['not_requested']);
    expect(await run()).toMatchObject({ state: 'failed' });
    expect(await gapsNow()).toMatchObject([{ reason: 'failed', detail: 'A line that nobody knows.' }]);
    lines.clear();
    requests.length = 0;
    const report = await runToEnd(pipeline, backfill({ ...WEEK, exchanges: ['BSE'] }));
    expect(report).toMatchObject({ state: 'completed', inserted: 1 });
    expect(requests).toEqual(['Power']);
    expect(await gapsNow()).toEqual([]);
  });
});
