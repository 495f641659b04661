import type { DataSet, Operation } from '../declaration/operation.ts';
import CompanyPledges from './files/CompanyPledges.ts';
import CorporateActionLists from './files/CorporateActionLists.ts';
import CorporateEvents from './files/CorporateEvents.ts';
import Deliveries from './files/Deliveries.ts';
import GetBannedSecurities from './files/GetBannedSecurities.ts';
import GetBlockDeals from './files/GetBlockDeals.ts';
import GetBulkDeals from './files/GetBulkDeals.ts';
import GetFIIDII from './files/GetFIIDII.ts';
import GetNewHL from './files/GetNewHL.ts';
import IndustryClassification from './files/IndustryClassification.ts';
import SymbolChanges from './files/SymbolChanges.ts';
import GetBhavCopyCM from './GetBhavCopyCM.ts';
import GetBhavCopyFO from './GetBhavCopyFO.ts';
import GetCircuitBreakers from './GetCircuitBreakers.ts';
import GetConsolidatedPledge from './GetConsolidatedPledge.ts';
import GetCorporateActions from './GetCorporateActions.ts';
import GetCorporateActionsCategories from './GetCorporateActionsCategories.ts';
import GetFinancialRatios from './GetFinancialRatios.ts';
import GetFinRatioEOD from './GetFinRatioEOD.ts';
import GetFinRatioSnapshot from './GetFinRatioSnapshot.ts';
import GetIndexDetail from './GetIndexDetail.ts';
import GetSectoralClassification from './GetSectoralClassification.ts';
import GetSeriesChange from './GetSeriesChange.ts';
import GetTop5GainersLosers from './GetTop5GainersLosers.ts';
import GetTotalTradeHighlights from './GetTotalTradeHighlights.ts';

// The lists of all operations and data sets. Every database has tables for each of them.

/** What EOD_OPERATIONS calls `default`. */
export const defaultOperations: readonly Operation[] = [
  GetBhavCopyCM,
  GetCircuitBreakers,
  GetConsolidatedPledge,
  GetCorporateActions,
  GetCorporateActionsCategories,
  GetFinRatioEOD,
  GetFinRatioSnapshot,
  GetFinancialRatios,
  GetSectoralClassification,
  GetSeriesChange,
  GetTop5GainersLosers,
  GetTotalTradeHighlights,
];

/** What is requested only if EOD_OPERATIONS names it; files fill it too. */
const furtherOperations: readonly Operation[] = [GetBhavCopyFO, GetIndexDetail];

/** Every operation that can be requested, in alphabetical order. */
export const operations: readonly Operation[] = [...defaultOperations, ...furtherOperations].sort((a, b) =>
  a.name < b.name ? -1 : 1,
);

/** What is never requested: its records come from files, or are computed from stored data. */
export const fileSets: readonly DataSet[] = [
  CompanyPledges,
  CorporateActionLists,
  CorporateEvents,
  Deliveries,
  GetBannedSecurities,
  GetBlockDeals,
  GetBulkDeals,
  GetFIIDII,
  GetNewHL,
  IndustryClassification,
  SymbolChanges,
];

/** Every data set that has tables. */
export const dataSets: readonly DataSet[] = [...operations, ...fileSets];
