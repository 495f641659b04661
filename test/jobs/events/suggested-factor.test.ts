import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/core/config.ts';
import { ratioOfFactor } from '../../../src/jobs/events/decide-event.ts';
import { suggestedFactor } from '../../../src/jobs/events/suggested-factor.ts';
import { issueCommand } from '../../../src/web/commands.ts';
import { forAll } from '../../support/for-all.ts';

test.each([
  ['bonus', 'Bonus issue 1:2 (fractions are paid)', null, '2:3'],
  ['bonus', 'BONUS SHARES 2 FOR EVERY 1', 70, '1:3'],
  ['split', 'Face Value Split From Rs 10/- To Re 1/- Per Share', null, '1:10'],
  ['split', 'Sub-division 5:1', null, '1:5'],
  ['consolidation', 'Consolidation from Re 1 to Rs 10', null, '10:1'],
  ['consolidation', 'Consolidation From Rs 3.30 Per Share To Rs 10 Per Share', null, '100:33'],
  ['split', 'Split from Rs 2.5 to Re 0.5', null, '1:5'],
  // Numbers of which a ratio or an amount is only a part.
  ['consolidation', 'Consolidation 10:3.3', null, null],
  ['split', 'Split 0.5:1', null, null],
  ['split', 'Split from Rs 10 to Rs 3.33333', null, null],
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
  const listed = effect === null ? text : `${text}; its price moved by ${effect} %`;
  expect(suggestedFactor(kind, listed)).toBe(factor);
  const event = {
    kind: 'corporate_action',
    priority: 1,
    operation: 'CorporateEvents',
    exchange: 'NSE',
  } as const;
  const id = `NSE:ABC:2024-02-05:${kind}`;
  const day = { exchanges: ['NSE'], from: '2024-02-05', to: '2024-02-05', items: 1, since: null };
  const issue = { ...event, ...day, subject: `ABC ${kind}`, id, text: listed, effect: null };
  expect(issueCommand(issue, loadConfig({}))).toBe(`eod events set ${id} --factor ${factor ?? 'A:B'}`);
});

test('whatever the text of an action, a suggested factor is one that can be typed', () => {
  const value = fc.oneof(
    fc.nat({ max: 1_000_000 }).map(String),
    fc.double({ min: 0, max: 1000, noNaN: true }).map(String),
    fc.nat({ max: 100_000 }).map((paise) => (paise / 100).toFixed(2)),
  );
  const text = fc
    .tuple(value, value, fc.constantFrom('A:B', 'A for every B', 'from Rs A to Re B', 'Rs.A/- TO RS. B/-'))
    .map(([a, b, form]) => form.replace('A', a).replace('B', b));
  const move = fc.option(fc.integer({ min: 0, max: 100_000 }).map((percent) => percent / 100));
  const kind = fc.constantFrom('split', 'consolidation', 'bonus');
  forAll([kind, text, move], { numRuns: 1000 }, (sort, listed, percent) => {
    const factor = suggestedFactor(
      sort,
      percent === null ? listed : `${listed}; its price moved by ${percent} %`,
    );
    if (factor !== null) expect(ratioOfFactor(factor), `${sort} ${listed}: ${factor}`).not.toBeNull();
  });
});
