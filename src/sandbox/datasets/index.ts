import { bhavcopy } from './bhavcopy.ts';
import { categories, corporateActions } from './categories.ts';
import { classification, pledge } from './companies.ts';
import type { Answering } from './dataset.ts';
import { circuitBreakers, gainersLosers, highlights, seriesChanges } from './market-activity.ts';
import { financialRatios, ratioFacts } from './ratios.ts';

const ratios: Answering = { sample: financialRatios, declared: ratioFacts };

/** How each operation is answered. One that is missing here is answered with invented records. */
export const answering: ReadonlyMap<string, Answering> = new Map<string, Answering>([
  ['GetBhavCopyCM', { sample: bhavcopy }],
  ['GetCircuitBreakers', { sample: circuitBreakers }],
  ['GetConsolidatedPledge', { sample: pledge, declared: corporateActions }],
  ['GetCorporateActionsCategories', { sample: categories, declared: corporateActions }],
  ['GetFinancialRatios', ratios],
  ['GetFinRatioEOD', ratios],
  ['GetFinRatioSnapshot', ratios],
  ['GetSectoralClassification', { sample: classification }],
  ['GetSeriesChange', { sample: seriesChanges }],
  ['GetTop5GainersLosers', { sample: gainersLosers }],
  ['GetTotalTradeHighlights', { sample: highlights }],
]);
