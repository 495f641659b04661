/** The views of the schema `market` (migrations/repeatable): a table cannot have the name of one. */
export const VIEWS: readonly string[] = [
  'band_hits',
  'company_pledge_symbols',
  'computed_band_hits',
  'computed_gainers_losers',
  'computed_trade_totals',
  'financial_ratios_wide',
  'instrument_aliases',
  'instruments',
  'pledge_changes',
  'prices',
  'prices_adjusted',
  'series_aliases',
  'share_events',
];
