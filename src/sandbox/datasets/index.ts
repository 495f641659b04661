import type { OperationDataSets } from '../answer/dataset.ts';
import { bhavcopy } from './bhavcopy.ts';
import { categories } from './categories.ts';
import { classification, pledge } from './company-answers.ts';
import { corporateActions, declaredActions, publishedActions } from './corporate-action-answers.ts';
import { circuitBreakers, gainersLosers, highlights, seriesChanges } from './market-activity.ts';
import { financialRatios, ratioFacts } from './ratios.ts';

const ratios: OperationDataSets = { sample: financialRatios, declared: ratioFacts };

/** The data of each operation's answers. An operation that is not listed is answered with invented records. */
export const dataSets: ReadonlyMap<string, OperationDataSets> = new Map<string, OperationDataSets>([
  ['GetBhavCopyCM', { sample: bhavcopy }],
  ['GetCircuitBreakers', { sample: circuitBreakers }],
  ['GetConsolidatedPledge', { sample: pledge, declared: corporateActions }],
  ['GetCorporateActions', { sample: publishedActions, declared: declaredActions }],
  ['GetCorporateActionsCategories', { sample: categories, declared: corporateActions }],
  ['GetFinancialRatios', ratios],
  ['GetFinRatioEOD', ratios],
  ['GetFinRatioSnapshot', ratios],
  ['GetSectoralClassification', { sample: classification }],
  ['GetSeriesChange', { sample: seriesChanges }],
  ['GetTop5GainersLosers', { sample: gainersLosers }],
  ['GetTotalTradeHighlights', { sample: highlights }],
]);
