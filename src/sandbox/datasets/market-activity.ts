import { largest } from '../../core/iterables.ts';
import type { TradeLine } from '../market/trade-file.ts';
import { type DataSet, listTradingDays, round2, rupees } from '../response/dataset.ts';
import type { SourceRecord } from '../response/record.ts';

const TOP = 5;
const PAISE_PER_LAKH = 1e7;
const PAISE_PER_CRORE = 1e9;
const CRORE = 1e7;

const change = (line: TradeLine) => ((line.close - line.previous) / line.previous) * 100;

/** The five largest rises, then the five largest falls, from the day's trade file. */
export const gainersLosers: DataSet = {
  table: 'top_gainers_losers',
  records(market, request) {
    const sides = request.options.type ?? 'GainersLosers';
    return listTradingDays(market, request).flatMap((day) => {
      const lines = market.lines(request.exchange, day);
      const rising = lines.filter((line) => line.close > line.previous);
      const falling = lines.filter((line) => line.close < line.previous);
      const gainers = rising.sort((a, b) => change(b) - change(a) || a.id - b.id).slice(0, TOP);
      const losers = falling.sort((a, b) => change(a) - change(b) || a.id - b.id).slice(0, TOP);
      const record = (line: TradeLine, isLoser: boolean): SourceRecord => ({
        scripCode: line.id,
        scripName: line.share.symbol.slice(0, 12).padEnd(12),
        scripGroup: line.series.padEnd(2),
        currentClosing: rupees(line.close),
        previousClosing: rupees(line.previous),
        percentageFluctation: round2(change(line)),
        quantity: line.quantity,
        turnover: round2(line.turnover / PAISE_PER_LAKH),
        isLoser,
        date: day,
        ...market.audit('gainers', request.exchange, day, line.revision),
      });
      return [
        ...(sides === 'Losers' ? [] : gainers.map((line) => record(line, false))),
        ...(sides === 'Gainers' ? [] : losers.map((line) => record(line, true))),
      ];
    });
  },
};

/** Sums of the day's trade file: one row `Total`, then one for each series or group. */
export const highlights: DataSet = {
  table: 'total_trade_highlights',
  records(market, request) {
    return listTradingDays(market, request).flatMap((day) => {
      const lines = market.lines(request.exchange, day);
      const groups = [...new Set(lines.map((line) => line.series))].sort();
      const row = (label: string, subset: readonly TradeLine[]): SourceRecord => {
        const sum = (of: (line: TradeLine) => number) => subset.reduce((total, line) => total + of(line), 0);
        return {
          tradeHighlights: label,
          scripsNo: subset.length,
          tradesNo: sum((line) => line.trades),
          sharesVol: round2(sum((line) => line.quantity) / CRORE),
          turnoverRsCr: round2(sum((line) => line.turnover) / PAISE_PER_CRORE),
          date: day,
          ...market.audit('highlights', request.exchange, day, largest(subset.map((line) => line.revision))),
        };
      };
      if (lines.length === 0) return [];
      return [
        row('Total', lines),
        ...groups.map((group) =>
          row(
            `Group ${group}`,
            lines.filter((line) => line.series === group),
          ),
        ),
      ];
    });
  },
};

/** Live responses of these two operations have no audit times. */
const NO_AUDIT = { receivedAt: undefined, savedAt: undefined };

/** Lines whose high or low reached a price band; a line may have reached both. */
export const circuitBreakers: DataSet = {
  table: 'circuit_breakers',
  records(market, request) {
    const day = request.day ?? '';
    const { band } = request.options;
    return market.lines(request.exchange, day).flatMap((line) => {
      const { symbol, name } = line.share;
      const suffix = request.exchange === 'NSE' && line.series !== 'EQ' ? `.${line.series}` : '';
      const hits = [...(line.hitHigh ? ['H'] : []), ...(line.hitLow ? ['L'] : [])];
      return hits
        .filter((hit) => band === undefined || band === hit)
        .map((hit) => ({
          date: day,
          scripId: `${symbol}${suffix}`,
          scripName: name,
          series: line.series,
          band: hit,
          ...NO_AUDIT,
        }));
    });
  },
};

/** Moves between series; the trade file of the same day already shows the new one. */
export const seriesChanges: DataSet = {
  table: 'series_changes',
  records(market, request) {
    const [wanted] = request.instruments;
    return listTradingDays(market, request).flatMap((day) =>
      market
        .moves(request.exchange, day)
        .filter(({ share }) => wanted === undefined || wanted === share.symbol)
        .map(({ share, from, to }) => ({
          changeDate: day,
          scripId: share.symbol,
          scripName: share.name,
          prevSeries: from,
          toSeries: to,
          ...NO_AUDIT,
        })),
    );
  },
};
