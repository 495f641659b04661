import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { importInto, openStore, query } from './import-support.ts';

const DATA = fileURLToPath(new URL('../../../shared/data/', import.meta.url));
const FOLDERS = ['bhavcopy', 'legacy_nse', 'legacy_bse', 'sec_bhavdata_full'].map((name) => join(DATA, name));
const present = existsSync(DATA);
if (!present) process.stdout.write('../shared/data is not here: instruments are not told from real files\n');

const NAMED = `market.bhavcopy_cm b join market.instrument_aliases a on a.exchange = b.exchange and a.kind = 'series'
  and a.alias = b.symbol and a.series = b.series and b.trade_date >= a.valid_from and b.trade_date < a.valid_to`;

describe.runIf(present)('instruments of the exchanges’ own files, 2019 to 2025', () => {
  test('each line is one instrument, each instrument one line a session; names follow renames, splits and moves', async () => {
    const context = await openStore();
    await importInto(context, FOLDERS);
    const one = async <Row extends object>(text: string) => (await query<Row>(context, text))[0];

    const lines = await one<{ n: number }>('select count(*)::int as n from market.bhavcopy_cm');
    expect(lines?.n).toBeGreaterThan(150_000);
    expect(await one(`select count(*)::int as n from ${NAMED}`)).toEqual(lines);
    expect(
      await query(
        context,
        `select a.instrument_id, b.trade_date::text, array_agg(b.symbol || '.' || b.series) from ${NAMED}
          group by 1, 2 having count(*) > 1`,
      ),
    ).toEqual([]);

    // BSE's own number is the instrument.
    expect(
      await query(
        context,
        `select count(*)::int as n from ${NAMED}
          where b.exchange = 'BSE' and a.instrument_id <> 'BSE:' || b.exchange_instrument_id`,
      ),
    ).toEqual([{ n: 0 }]);

    const names = (symbol: string, exchange: string) =>
      query<{ kind: string; alias: string }>(
        context,
        `select kind, alias from market.instrument_aliases where kind in ('symbol', 'isin') and instrument_id = (
           select instrument_id from market.instruments where exchange = '${exchange}' and symbol = '${symbol}')
         order by 1, first_seen, 2`,
      );
    // Renames; a split; a fund that went to another house; a sister share with other voting rights, renamed.
    const symbolsOf = async (symbol: string, exchange: string) =>
      (await names(symbol, exchange)).filter(({ kind }) => kind === 'symbol').map(({ alias }) => alias);
    expect(await symbolsOf('BNAGROCHEM', 'BSE')).toEqual(['BNHOLDINGS', 'BNAGROCHEM']);
    expect(await symbolsOf('ZYDUSLIFE', 'NSE')).toEqual(['CADILAHC', 'ZYDUSLIFE']);
    expect(await names('NIFTYBEES', 'NSE')).toEqual([
      { kind: 'isin', alias: 'INF732E01011' },
      { kind: 'isin', alias: 'INF204KB14I2' },
      { kind: 'symbol', alias: 'NIFTYBEES' },
    ]);
    expect(await names('DIXON', 'NSE')).toEqual([
      { kind: 'isin', alias: 'INE935N01012' },
      { kind: 'isin', alias: 'INE935N01020' },
      { kind: 'symbol', alias: 'DIXON' },
    ]);
    expect(await names('GATECHDVR', 'NSE')).toEqual([
      { kind: 'isin', alias: 'INE224E01036' },
      { kind: 'symbol', alias: 'SCAPDVR' },
      { kind: 'symbol', alias: 'GATECHDVR' },
    ]);

    // No name in these files was used by two instruments, one after the other.
    expect(
      await query(
        context,
        "select kind, alias from market.instrument_aliases where valid_from <> '-infinity'",
      ),
    ).toEqual([]);

    // The same ticker on the two exchanges may be two companies: the ISIN tells.
    const tickers = await query<{ same: boolean }>(
      context,
      `select distinct left(n.isin, 7) = left(b.isin, 7) as same from market.instruments n
         join market.instruments b on b.symbol = n.symbol and b.exchange = 'BSE'
        where n.exchange = 'NSE' and n.series = 'EQ' and n.last_seen >= '2025-08-29' and b.last_seen >= '2025-09-05'`,
    );
    expect(tickers.map(({ same }) => same).sort()).toEqual([false, true]);
  }, 240_000);
});
