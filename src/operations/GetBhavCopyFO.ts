import { defineOperation } from '../declaration/define-operation.ts';
import { text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';
import { type OwnMeaning, UDIFF_FIELDS, UNDERLYING } from './tables/udiff.ts';

/** What differs from the cash market, by column. */
const OWN: Readonly<Record<string, OwnMeaning>> = {
  symbol: { meaning: 'Ticker symbol of the underlying, as the files have it, e.g. NIFTY or RELIANCE.' },
  series: { meaning: 'Empty: derivatives have no series.' },
  segment: { meaning: 'Market segment; FO are the equity derivatives.' },
  source_exchange: { meaning: 'Exchange that wrote the record: BSE for BFO, NSE for NFO.' },
  instrument_type: {
    meaning: 'IDF or IDO: future or option on an index; STF or STO: on a share.',
  },
  exchange_instrument_id: {
    meaning: 'Number of the contract on its exchange; not part of the key, as the source may send 0.',
  },
  isin: { meaning: 'Usually blank for derivatives.' },
  expiry_date: { meaning: 'Day on which the contract expires.', required: true },
  actual_expiry_date: { meaning: 'Day on which it expires in fact, if a holiday moves it.' },
  strike_price: { meaning: 'Strike price; 0 for futures.', absent: 0 },
  option_type: {
    meaning: 'CE (call) or PE (put); empty for futures.',
    absent: '',
    // The source's identifiers have FF for futures, the exchange's older files XX.
    blanks: ['FF', 'XX'],
  },
  instrument_full_name: { meaning: 'Name of the contract, e.g. NIFTY25MARFUT.' },
  close_price: {
    meaning:
      'Closing price, also where nothing was traded; on the day of expiry BSE prints that of the underlying.',
  },
  previous_close_price: { meaning: 'Closing price of the trading day before.' },
  settlement_price: { meaning: 'Settlement price.' },
  traded_quantity: {
    meaning:
      'Total traded quantity. NSE counts contracts, BSE units of the underlying, as their turnover shows; times board_lot_quantity, contracts are units.',
    unit: `contracts (NSE), ${UNDERLYING} (BSE)`,
  },
  turnover: { meaning: 'Total traded value: for options of strike and premium together.' },
  board_lot_quantity: { meaning: 'Units of the underlying in a contract.', unit: UNDERLYING },
};

/*
 * The terms are the key: the source's own identifiers are made of them, each exchange has one contract with the same
 * terms, and they distinguish contracts even if the source sends no number (FinInstrmId). The instrument type is not
 * among them, because whether there is an option type shows the same.
 */
const table = defineTable({
  name: 'bhavcopy_fo',
  comment:
    'Bhav copy of derivatives: the end-of-day trade file of futures and options, one row per contract and trading day. Partitioned by year of trade_date.',
  key: ['exchange', 'symbol', 'expiry_date', 'strike_price', 'option_type', 'trade_date'],
  partitionBy: 'trade_date',
  fields: [
    ...UDIFF_FIELDS.map((field) => ({ ...field, ...OWN[field.column] })),
    text(
      'identifier',
      'identifier',
      "The source's name of the contract, with which it is requested; exchange files have none.",
    ),
  ],
});

/**
 * Documented: the parameters, the fields, which are those of the cash market's bhav copy, and that an `Identifier` comes
 * with them. Assumed: that symbol and terms are sent as the exchanges write them; no sample is published.
 */
export default defineOperation({
  name: 'GetBhavCopyFO',
  title: 'Prices of derivatives',
  group: 'prices',
  summary: 'Bhav copy of derivatives: end-of-day prices, volumes and open interest of futures and options',
  exchanges: ['BFO'],
  request: { dates: 'range', instruments: 'many', dTFormat: true, options: [] },
  // `Src` names the exchange (BSE), not the segment that was requested (BFO), so there is no `exchangeColumn`.
  shapes: [{ table, has: ['symbol', 'tradDt'], symbolColumn: 'identifier', dated: true, fullSet: 'days' }],
  udiff: { segment: 'FO', exchanges: { BSE: 'BFO', NSE: 'NFO' } },
  windows: { per: 'session' },
  schedule: { at: '21:19', on: 'daily', hasLookback: true, order: 1 },
  emptyIsNormal: false,
});
