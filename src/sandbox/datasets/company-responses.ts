import type { Day } from '../../core/days.ts';
import { between, chance } from '../market/hash.ts';
import { dayNumber, type Share, type Shares } from '../market/shares.ts';
import { type DataSet, listTradingDays, round2 } from '../response/dataset.ts';
import type { SourceRecord } from '../response/record.ts';

/** On this day all companies were classified. */
const CLASSIFIED: Day = '2022-03-31';

function matches(filter: string | undefined, code: string, name: string): boolean {
  return filter === undefined || filter === code || filter.toLowerCase() === name.toLowerCase();
}

/** Each listed company once, as it was classified then, if a trading day was requested or none was named. */
export const classification: DataSet = {
  table: 'sectoral_classification',
  records(market, request) {
    if (request.range !== null && listTradingDays(market, request).length === 0) return [];
    const shares = market.shares(request.exchange);
    const audit = market.audit('classification', request.exchange, CLASSIFIED);
    const { sector, industry, basicIndustry } = request.options;
    return shares.list.flatMap((share): SourceRecord[] => {
      if (request.instruments.length > 0 && !request.instruments.includes(share.symbol)) return [];
      const { industry: of } = share;
      const fits =
        matches(sector, of.sectorCode, of.sector) &&
        matches(industry, of.industryCode, of.industry) &&
        matches(basicIndustry, of.code, of.name);
      if (!fits) return [];
      return [
        {
          symbol: share.symbol,
          scripCode: shares.companyNumber(share),
          companyName: share.name,
          allotedFrom: CLASSIFIED,
          meiCode: of.macroCode,
          macroEconomicIndicator: of.macro,
          sectCode: of.sectorCode,
          sector: of.sector,
          industryCode: of.industryCode,
          industry: of.industry,
          basicIndustryCode: of.code,
          basicIndustry: of.name,
          isin: share.isin,
          ...audit,
        },
      ];
    });
  },
};

/** What the sandbox does not say of pledges is invented, for each day. */
function pledgeRecord(shares: Shares, share: Share, day: Day): SourceRecord {
  const issued = between(2_000_000, 90_000_000, share.seed, 0, 63) * (share.wellKnown ? 40 : 1);
  const promoter = Math.floor(issued * (0.2 + 0.5 * chance(share.seed, 0, 64)));
  const week = Math.floor(dayNumber(day) / 7);
  const pledged = Math.floor(promoter * 0.4 * chance(share.seed, week, 65));
  return {
    ScripId: share.symbol,
    ScripCode: shares.companyNumber(share),
    CompanyName: share.name,
    TotalIssuedShares: issued,
    TotalPromoterHoldingShares: promoter,
    TotalPromoterHoldingPer: round2((promoter / issued) * 100),
    TotalPublicHolding: issued - promoter,
    PromoterSharesEncumberedasoflastquarter_NoofShares: pledged,
    PromoterSharesEncumberedasoflastquarter_Perofpromotershares: round2((pledged / promoter) * 100),
    PromoterSharesEncumberedasoflastquarter_Peroftotalshares: round2((pledged / issued) * 100),
    Noofsharespledgedinthedepositorysystem_DNoofsharespledged: pledged,
    Noofsharespledgedinthedepositorysystem_ETotalnoofdematshares: issued,
    Noofsharespledgedinthedepositorysystem_FPerDE: round2((pledged / issued) * 100),
    TradeDate: day,
  };
}

/** Proportion of companies whose promoters have pledged shares. */
const PLEDGED = 0.6;

/** One record a trading day for each company whose promoters pledged shares. */
export const pledge: DataSet = {
  table: 'consolidated_pledge',
  records(market, request) {
    const shares = market.shares(request.exchange);
    const [wanted] = request.instruments;
    const pledging = shares.list
      .filter(({ symbol }) => wanted === undefined || wanted === symbol)
      .filter(({ wellKnown, seed }) => wellKnown || chance(seed, 0, 71) <= PLEDGED);
    return listTradingDays(market, request).flatMap((day) => {
      const audit = market.audit('pledge', request.exchange, day);
      return pledging.map((share) => ({ ...pledgeRecord(shares, share, day), ...audit }));
    });
  },
};
