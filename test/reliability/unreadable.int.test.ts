import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { expect, test } from 'vitest';
import { pruneRuns } from '../../src/jobs/runs/prune-runs.ts';
import { startServer } from '../support/http-server.ts';
import { openSetup, windowsOf } from './support.ts';

const decompress = promisify(brotliDecompress);

const DAY = '2025-09-10';
const REQUESTED = { from: DAY, to: DAY, operations: ['GetTotalTradeHighlights'], exchanges: ['BSE'] };
/** Broken as one of the service's published samples is. */
const BROKEN = '{"Value":[\n{ "TradeHighlights": ""Total"",\n"ScripsNo": 4471}\n]}';

test('a response that cannot be read is kept for people, says where it breaks, and is in no replay’s way', async () => {
  const sourceUrl = await startServer((_request, response) => void response.end(BROKEN));
  const setup = await openSetup({ sourceUrl, settings: { EOD_ATTEMPTS: '2', EOD_BACKOFF_MS: '1' } });
  const { runId } = await setup.run(REQUESTED);
  const [window] = await windowsOf(setup, runId);
  expect(window).toMatchObject({ state: 'failed', error: expect.stringMatching(/line 2, character \d+/) });
  const { pool } = setup.db;
  const bodies = async () =>
    (
      await pool.query<{ body: Buffer; encoding: string }>(
        'select b.body, b.encoding from etl.windows w join etl.response_bodies b on b.hash = w.refused_hash where w.run_id = $1',
        [runId],
      )
    ).rows;
  const [kept] = await bodies();
  expect(kept?.encoding).toBe('br');
  expect((await decompress(kept?.body ?? Buffer.alloc(0))).toString()).toBe(BROKEN);
  expect((await pool.query('select from etl.responses')).rowCount).toBe(0);

  // It is deleted with its window, and not before.
  expect(await pruneRuns(setup)).toMatchObject({ windows: 0, bodies: 0 });
  expect(await bodies()).toHaveLength(1);
  await pool.query(
    "update etl.runs set follow_up = 'done', finished_at = finished_at - interval '4000 days'",
  );
  expect(await pruneRuns(setup)).toMatchObject({ windows: 1, bodies: 1 });
  expect(await bodies()).toEqual([]);
});
