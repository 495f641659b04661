import type { Exchange } from '../../core/exchanges.ts';
import type { Market } from '../market/market.ts';
import type { TradeLine } from '../market/trade-file.ts';
import { type DataSet, listTradingDays, rupees } from '../response/dataset.ts';
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
    isin: line.share.isin,
    symbol: line.share.symbol,
    sctySrs: line.series,
    finInstrmNm: line.share.name,
    ssnId: 'F1',
    tradDt: day,
    bizDt: day,
    openPrice: rupees(line.open),
    highPrice: rupees(line.high),
    lowPrice: rupees(line.low),
    closePrice: rupees(line.close),
    lastPrice: rupees(line.last),
    prevClosePrice: rupees(line.lastClose),
    sttlmPric: rupees(line.settlement),
    ttq: line.quantity,
    ttlTrfVal: rupees(line.turnover),
    totalTradesNo: line.trades,
    newBrdLotQty: line.series === 'SM' || line.series === 'M' ? 1_000 : 1,
    receivedAt,
    savedAt,
  };
}

export const bhavcopy: DataSet = {
  table: 'bhavcopy_cm',
  records(market, request) {
    const { exchange, instruments } = request;
    return listTradingDays(market, request).flatMap((day) =>
      market
        .lines(exchange, day)
        .filter(({ share }) => instruments.length === 0 || instruments.includes(share.symbol))
        .map((line) => record(line, market, exchange, day)),
    );
  },
};
