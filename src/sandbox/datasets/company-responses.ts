import { addDays, type Day, daysBetween } from '../../core/days.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { type Company, type Industry, industries } from '../market/companies.ts';
import { between, chance } from '../market/hash.ts';
import { companyNumber, type Instrument } from '../market/path.ts';
import { type DataSet, round2, sessionsOf } from '../response/dataset.ts';
import type { SourceRecord } from '../response/record.ts';

/** On this day all companies were classified again. */
const CLASSIFIED: Day = '2022-03-31';
const FIRST_CLASSIFIED: Day = '2011-04-01';

/** The classification of a company that is valid on `day`; some companies were moved once after 2022. */
function classificationOn(instrument: Instrument, company: Company, day: Day) {
  const listed = instrument.listedOn === 0 ? '' : addDays('1970-01-01', instrument.listedOn);
  const moved = addDays(CLASSIFIED, between(60, 1_700, company.seed, 0, 60));
  const another = industries[between(0, industries.length - 1, company.seed, 0, 61)] as Industry;
  const everMoved = !company.wellKnown && chance(company.seed, 0, 62) < 0.1 && moved > listed;
  const later = everMoved && day < moved ? another : company.industry;
  if (everMoved && day >= moved) return { from: moved, industry: company.industry };
  if (day >= CLASSIFIED) return { from: listed > CLASSIFIED ? listed : CLASSIFIED, industry: later };
  return { from: listed > FIRST_CLASSIFIED ? listed : FIRST_CLASSIFIED, industry: later };
}

function matches(filter: string | undefined, code: string, name: string): boolean {
  return filter === undefined || filter === code || filter.toLowerCase() === name.toLowerCase();
}

/**
 * Each listed company once, with its classification on the last session of the range (without a range, on the newest
 * session) and the audit times of that session.
 */
export const classification: DataSet = {
  table: 'sectoral_classification',
  records(market, query) {
    const day =
      query.range === null ? market.latestSession(query.exchange) : sessionsOf(market, query).at(-1);
    if (day === null || day === undefined) return [];
    const wanted = new Set(query.instruments);
    const session = market.path(query.exchange).sessionAt(day);
    const audit = market.audit('classification', query.exchange, day);
    const { sector, industry, basicIndustry } = query.options;
    return market.shares(query.exchange, session).flatMap(({ instrument }): SourceRecord[] => {
      const { company } = instrument;
      if (company === null || (wanted.size > 0 && !wanted.has(instrument.symbol))) return [];
      const held = classificationOn(instrument, company, day);
      const { changesOnly, range } = query;
      if (changesOnly === true && range !== null && (held.from < range.from || held.from > range.to))
        return [];
      const of = held.industry;
      const fits =
        matches(sector, of.sectorCode, of.sector) &&
        matches(industry, of.industryCode, of.industry) &&
        matches(basicIndustry, of.code, of.name);
      if (!fits) return [];
      return [
        {
          symbol: instrument.symbol,
          scripCode: companyNumber(query.exchange, instrument),
          companyName: instrument.name,
          allotedFrom: held.from,
          meiCode: of.macroCode,
          macroEconomicIndicator: of.macro,
          sectCode: of.sectorCode,
          sector: of.sector,
          industryCode: of.industryCode,
          industry: of.industry,
          basicIndustryCode: of.code,
          basicIndustry: of.name,
          isin: instrument.isin,
          ...audit,
        },
      ];
    });
  },
};

/** The number of shares a company has issued, the same on every day. */
export function issuedShares(company: Company): number {
  return between(2_000_000, 90_000_000, company.seed, 0, 63) * (company.wellKnown ? 40 : 1);
}

const QUARTER_DAYS = 91;

function pledgeRecord(exchange: Exchange, instrument: Instrument, company: Company, day: Day): SourceRecord {
  const issued = issuedShares(company);
  const promoter = Math.floor(issued * (0.2 + 0.5 * chance(company.seed, 0, 64)));
  const quarter = Math.floor(daysBetween('2000-01-01', day) / QUARTER_DAYS);
  const encumbered = Math.floor(promoter * 0.4 * chance(company.seed, quarter, 65));
  const week = Math.floor(daysBetween('2000-01-01', day) / 7);
  const demat = Math.floor(issued * (0.95 + 0.05 * chance(company.seed, 0, 66)));
  const pledged = Math.floor(encumbered * (1 + 0.3 * chance(company.seed, week, 67)));
  const price = company.paise / 100;
  return {
    ScripId: instrument.symbol,
    ScripCode: companyNumber(exchange, instrument),
    CompanyName: instrument.name,
    TotalIssuedShares: issued,
    TotalPromoterHoldingShares: promoter,
    TotalPromoterHoldingPer: round2((promoter / issued) * 100),
    TotalPublicHolding: issued - promoter,
    PromoterSharesEncumberedasoflastquarter_NoofShares: encumbered,
    PromoterSharesEncumberedasoflastquarter_Perofpromotershares: round2((encumbered / promoter) * 100),
    PromoterSharesEncumberedasoflastquarter_Peroftotalshares: round2((encumbered / issued) * 100),
    PromoterSharesEncumberedasoflastquarter_Values: round2((encumbered * price) / 1e7),
    DisclosuresmadebypromotersontheirencumberedsharesunderRegulation31ofSASTsincethelastquarter:
      chance(company.seed, quarter, 68) < 0.05 ? 'Disclosure received' : null,
    Noofsharespledgedinthedepositorysystem_DNoofsharespledged: pledged,
    Noofsharespledgedinthedepositorysystem_ETotalnoofdematshares: demat,
    Noofsharespledgedinthedepositorysystem_FPerDE: round2((pledged / demat) * 100),
    Noofsharespledgedinthedepositorysystem_ValuesPromoter: round2((pledged * price) / 1e7),
    NoofsharesheldwithNBFCascollateralagainstlending_Promotershares:
      between(0, 3, company.seed, quarter, 69) * 400,
    NoofsharesheldwithNBFCascollateralagainstlending_NonPromotershares:
      between(0, 9, company.seed, week, 70) * 150,
    TradeDate: day,
  };
}

/** Proportion of companies whose promoters have pledged shares. */
const PLEDGED = 0.6;

/** One record a session for each company whose promoters pledged shares. */
export const pledge: DataSet = {
  table: 'consolidated_pledge',
  records(market, query) {
    const path = market.path(query.exchange);
    const [wanted] = query.instruments;
    return sessionsOf(market, query).flatMap((day) => {
      const audit = market.audit('pledge', query.exchange, day);
      return market.shares(query.exchange, path.sessionAt(day)).flatMap(({ instrument }): SourceRecord[] => {
        const { company } = instrument;
        if (company === null || (wanted !== undefined && wanted !== instrument.symbol)) return [];
        if (!company.wellKnown && chance(company.seed, 0, 71) > PLEDGED) return [];
        return [{ ...pledgeRecord(query.exchange, instrument, company, day), ...audit }];
      });
    });
  },
};
