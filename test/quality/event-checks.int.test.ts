import { beforeAll, describe, expect, test } from 'vitest';
import type { Row } from '../../src/declaration/table.ts';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { listFindings } from '../../src/state/findings.ts';
import { bhavRow, loadBhav } from '../load/support.ts';
import { importInto, newFile, openStore } from '../support/import-support.ts';

// A Wednesday to a Friday; both exchanges were open on each.
const [FIRST, SECOND, THIRD] = ['2025-09-10', '2025-09-11', '2025-09-12'] as const;

describe('checks of corporate events', () => {
  let context: Awaited<ReturnType<typeof openStore>>;
  const line = (symbol: string, day: string, [before, open, close]: readonly number[], more: Row = {}): Row =>
    bhavRow({
      symbol,
      trade_date: day,
      isin: `INE${symbol}01011`,
      previous_close_price: String(before),
      open_price: String(open),
      close_price: String(close),
      ...more,
    });
  const findingsOf = async (check: string) => {
    await checkQuality(context, { from: FIRST, to: THIRD });
    const { findings } = await listFindings(context.db.drizzle, { check, limit: 100 });
    return findings
      .map(({ date, instrument, expected, found: got }) => `${date} ${instrument}: ${expected}; ${got}`)
      .sort();
  };

  beforeAll(async () => {
    context = await openStore();
    const { db } = context;
    const first = 'GAPA GAPB KNOW BAND THIN DAYS NEWS LOST FLAT BOTH CASH MOVE SAME WAIT ONLY'.split(' ');
    await loadBhav(
      db,
      first.map((symbol) => line(symbol, FIRST, [99, 100, 100], { turnover: '100' })),
    );
    await loadBhav(db, [
      line('GAPA', SECOND, [100, 20.5, 19.9], { isin: 'INEGAPA01029' }),
      line('GAPB', SECOND, [100, 70, 71]),
      line('KNOW', SECOND, [100, 50, 51]),
      // At its band, and with a tick beyond it.
      line('BAND', SECOND, [100, 80, 79.96]),
      // The first trade of a fund that few trade; a move within the trading day; a move over night, of whatever cause.
      line('THIN', SECOND, [100, 130, 101]),
      line('DAYS', SECOND, [100, 110, 140]),
      line('NEWS', SECOND, [100, 112, 140], { trade_count: 893_152, turnover: '2500' }),
      // Its previous close is not the close that is stored: a trading day is missing in between.
      line('LOST', SECOND, [51, 50, 51]),
      line('FLAT', SECOND, [100, 99, 101]),
    ]);
    // A bond of which a part is paid back.
    await loadBhav(db, [line('BOND', FIRST, [100, 100, 100], { isin: 'INE000A07011', series: 'N1' })]);
    await loadBhav(db, [line('BOND', SECOND, [100, 50, 50], { isin: 'INE000A07011', series: 'N1' })]);
    const onBse = ['BOTH', 'CASH', 'MOVE', 'SAME', 'WAIT', 'ONLY'];
    await loadBhav(
      db,
      onBse.map((symbol, at) =>
        line(symbol, FIRST, [99, 100, 100], {
          exchange: 'BSE',
          series: 'A',
          exchange_instrument_id: 500_001 + at,
        }),
      ),
      { exchange: 'BSE' },
    );
    const events = [
      `NSE,KNOW,${SECOND},bonus,1:1,`,
      `NSE,FLAT,${SECOND},split,2:1,`,
      `NSE,BOTH,${THIRD},bonus,1:1,`,
      `BSE,BOTH,${THIRD},bonus,1:2,`,
      `NSE,CASH,${THIRD},dividend,2,`,
      `BSE,CASH,${THIRD},dividend,2.50,`,
      `NSE,MOVE,${THIRD},split,2:1,`,
      'BSE,MOVE,2025-09-15,split,2:1,',
      `NSE,SAME,${THIRD},split,2:1,`,
      `BSE,SAME,${THIRD},split,10:5,`,
      `NSE,WAIT,${THIRD},bonus,,`,
      `BSE,WAIT,${THIRD},bonus,1:1,`,
      `BSE,ONLY,${THIRD},bonus,1:1,`,
    ];
    await importInto(context, [
      newFile('events.csv', ['exchange,symbol,ex_date,kind,ratio,note', ...events]),
    ]);
  });

  test('name gaps beyond the price bands that no event explains, with what speaks for an event', async () => {
    expect(await findingsOf('unexplained_gap')).toEqual([
      `${SECOND} GAPA EQ: within 20 % of 100 (close of ${FIRST}), or an event; open 20.5, close 19.9; as if prices before were to be multiplied by 1:5; ISIN INEGAPA01011 before, INEGAPA01029 after`,
      `${SECOND} GAPB EQ: within 20 % of 100 (close of ${FIRST}), or an event; open 70, close 71`,
      `${SECOND} NEWS EQ: within 20 % of 100 (close of ${FIRST}), or an event; open 112, close 140; 893152 trades; turnover 25.0 times that of the 20 trading days before`,
    ]);
  });

  test('name applied events on whose day the price did not move', async () => {
    expect(await findingsOf('factor_without_gap')).toEqual([
      `${SECOND} FLAT EQ: about 50.00: 100 (close of ${FIRST}) times 0.500000; open 99, close 101`,
    ]);
  });

  test('name events that the exchanges state differently', async () => {
    expect(await findingsOf('same_event_differs')).toEqual([
      `${THIRD} BOTH bonus: 3:2 on ${THIRD} (BSE); 2:1 on ${THIRD}`,
      `${THIRD} CASH dividend: Rs 2.5 on ${THIRD} (BSE); Rs 2 on ${THIRD}`,
      `${THIRD} MOVE split: 2:1 on 2025-09-15 (BSE); 2:1 on ${THIRD}`,
      `${THIRD} WAIT bonus: 2:1 on ${THIRD} (BSE); not decided on ${THIRD}`,
    ]);
  });

  test('an event that becomes known settles a gap', async () => {
    await importInto(context, [
      newFile('late.csv', ['exchange,symbol,ex_date,kind,ratio,note', `NSE,GAPA,${SECOND},split,5:1,`]),
    ]);
    expect((await findingsOf('unexplained_gap')).map((text) => text.slice(11, 18))).toEqual([
      'GAPB EQ',
      'NEWS EQ',
    ]);
  });
});
