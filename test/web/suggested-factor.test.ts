import { expect, test } from 'vitest';
import { issueCommand } from '../../src/web/commands.ts';
import { suggestedFactor } from '../../src/web/suggested-factor.ts';

test.each([
  ['bonus', 'Bonus issue 1:2 (fractions are paid)', null, '2:3'],
  ['bonus', 'BONUS SHARES 2 FOR EVERY 1', 70, '1:3'],
  ['split', 'Face Value Split From Rs 10/- To Re 1/- Per Share', null, '1:10'],
  ['split', 'Sub-division 5:1', null, '1:5'],
  ['consolidation', 'Consolidation from Re 1 to Rs 10', null, '10:1'],
  // Without a ratio: the usual factor nearest to the move of the price, if one is near.
  ['split', 'Split', 79.6, '1:5'],
  ['bonus', 'Bonus', 51.2, '1:2'],
  ['consolidation', 'Consolidation', 410, '5:1'],
  ['split', 'Split', 8, null],
  ['split', 'Split', null, null],
  // Its ratio of shares does not say what prices are multiplied by.
  ['demerger', 'Demerger 1:1', 30, null],
  ['rights', 'Rights 1:5', 25, null],
  ['other', 'Amalgamation 3:7', 25, null],
])('%s "%s" with a move of %s % suggests %s', (kind, text, effect, factor) => {
  expect(suggestedFactor(kind, text, effect)).toBe(factor);
  const event = {
    kind: 'corporate_action',
    priority: 1,
    operation: 'CorporateEvents',
    exchange: 'NSE',
  } as const;
  const id = `NSE:ABC:2024-02-05:${kind}`;
  const day = { exchanges: ['NSE'], from: '2024-02-05', to: '2024-02-05', items: 1, since: null };
  expect(issueCommand({ ...event, ...day, subject: `ABC ${kind}`, id, text, effect })).toBe(
    `eod events set ${id} --factor ${factor ?? 'A:B'}`,
  );
});
