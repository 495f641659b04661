import type { Exchange } from '../../core/exchanges.ts';
import type { Market } from '../market/market.ts';
import type { TradeLine } from '../market/session.ts';
import { type DataSet, rupees, sessionsOf } from '../response/dataset.ts';
import type { SourceRecord } from '../response/record.ts';

function record(line: TradeLine, market: Market, exchange: Exchange, day: string): SourceRecord {
  const { receivedAt, savedAt } = market.audit('bhavcopy', exchange, day, line.revision);
  return {
    // These are always blank in the cash market.
    expiry: null,
    finInstrmActlXpryDt: null,
    strikePrice: null,
    optionType: null,
    underlyingPrice: null,
    oi: null,
    oiChng: null,
    instrumentName: null,
    sgmt: 'CM',
    src: exchange,
    finInstrmTp: 'STK',
    finInstrmId: line.id,
    isin: line.instrument.isin,
    symbol: line.instrument.symbol,
    sctySrs: line.series,
    finInstrmNm: line.instrument.name,
    ssnId: 'F1',
    tradDt: day,
    bizDt: day,
    openPrice: rupees(line.open),
    highPrice: rupees(line.high),
    lowPrice: rupees(line.low),
    closePrice: rupees(line.close),
    lastPrice: rupees(line.last),
    prevClosePrice: rupees(line.lastClose),
    sttlmPric: line.settlement === null ? null : rupees(line.settlement),
    ttq: line.quantity,
    ttlTrfVal: rupees(line.turnover),
    totalTradesNo: line.trades,
    newBrdLotQty: line.series === 'SM' || line.series === 'M' ? 1_000 : 1,
    receivedAt,
    savedAt,
  };
}

/** Records of a trade file, cached as long as the market keeps the file. */
const recordsByLines = new WeakMap<readonly TradeLine[], readonly SourceRecord[]>();

function recordsOf(lines: readonly TradeLine[], market: Market, exchange: Exchange, day: string) {
  let records = recordsByLines.get(lines);
  if (records === undefined) {
    records = lines.map((line) => record(line, market, exchange, day));
    recordsByLines.set(lines, records);
  }
  return records;
}

export const bhavcopy: DataSet = {
  table: 'bhavcopy_cm',
  records(market, query) {
    const { exchange, instruments } = query;
    return sessionsOf(market, query).flatMap((day) => {
      const lines = market.lines(exchange, day);
      if (instruments.length === 0) return recordsOf(lines, market, exchange, day);
      return lines
        .filter((line) => instruments.includes(line.instrument.symbol))
        .map((line) => record(line, market, exchange, day));
    });
  },
};
