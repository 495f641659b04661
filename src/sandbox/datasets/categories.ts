import type { DataSet } from '../answer/dataset.ts';

/** Label and code of each kind of corporate action. */
export const CATEGORIES: readonly (readonly [label: string, code: string])[] = [
  ['A.G.M.', 'AGM'],
  ['Amalgamation', 'AM'],
  ['Annual Book Closure', 'ABC'],
  ['Bonus issue', 'BN'],
  ['Buy Back of Shares', 'BGM'],
  ['Change in Terms or Status', 'EX'],
  ['Consolidation of Shares', 'CS'],
  ['Conversion of FCD', 'FC'],
  ['Conversion of PCD', 'PC'],
  ['Court Convened Meeting', 'CCM'],
  ['Demerger', 'DM'],
  ['Dividend', 'DP'],
  ['E.G.M.', 'EGM'],
  ['Final Dividend', 'FD'],
  ['Interest Payment', 'IP'],
  ['Interim Dividend', 'ID'],
  ['Issue of Warrants', 'WR'],
  ['Postal Ballot', 'POM'],
  ['Preferential Issue', 'PI'],
  ['Redemption of NCD', 'RD'],
  ['Reduction of Capital', 'RC'],
  ['Right Issue of Equity Shares', 'RT'],
  ['Scheme of Arrangement', 'SOA'],
  ['Special Dividend', 'SD'],
  ['Spin Off', 'SO'],
  ['Stock Split', 'SS'],
];

/** The list of kinds; codes padded to three characters. */
export const categories: DataSet = {
  table: 'corporate_action_categories',
  records: () =>
    CATEGORIES.map(([corporateActiontype, code]) => ({
      corporateActiontype,
      purposeCode: code.padEnd(3),
      receivedAt: undefined,
      savedAt: undefined,
    })),
};
