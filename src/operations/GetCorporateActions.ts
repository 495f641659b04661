import { defineOperation } from '../declaration/define-operation.ts';
import { corporateActionShape } from './tables/corporate-actions.ts';

/**
 * What is documented: the parameters, the fields and one response. What is not: which day `from` and `to` select. In
 * the published response, the record date and the ex-date are the day that was requested; it was received three days
 * before. So a night requests backwards, for late announcements and corrections if these days count, and ahead, for
 * actions with an ex-date to come; no record is rejected for its days, and nothing is withdrawn because a response does
 * not list it.
 */
export default defineOperation({
  name: 'GetCorporateActions',
  title: 'Corporate actions',
  group: 'corporate actions',
  summary: 'As the source states them, raw: dividends, splits, bonuses, rights and other corporate actions',
  exchanges: ['BSE'],
  request: {
    dates: 'range',
    instruments: 'one',
    dTFormat: true,
    options: [
      { param: 'actionType', meaning: 'only actions of this kind, e.g. Dividend', isFilter: true },
      { param: 'purposeCode', meaning: 'only actions with this code, e.g. DP', isFilter: true },
    ],
  },
  shapes: [corporateActionShape],
  // The service limits ranges of other operations to 30 days. So a night makes two calls: the lookback, and the days to
  // come. An action is announced at least some days before its ex-date, and is requested each night until then.
  windows: { per: 'range', days: 30, everyDay: true, ahead: 30 },
  schedule: { at: '21:48', on: 'daily', hasLookback: true, order: 2 },
  emptyIsNormal: true,
});
