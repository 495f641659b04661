import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { priceFactor, workOutEvents } from '../../src/jobs/events/work-out-events.ts';
import type { Notice } from '../../src/load/market/corporate-events.ts';
import type { EventDecision } from '../../src/load/state/event-decisions.ts';

const notice = (purpose: string, more: Partial<Notice> = {}): Notice => ({
  exchange: 'NSE',
  symbol: 'ABC',
  series: 'EQ',
  exDate: '2024-05-02',
  purpose,
  scripCode: null,
  recordDate: null,
  toldKind: null,
  toldRatio: null,
  symbolOfDay: false,
  readAt: 1,
  ...more,
});

const short = (notices: readonly Notice[], decisions: readonly EventDecision[] = []) =>
  workOutEvents(notices, decisions)
    .map(({ eventId, ratio, amount, status }) =>
      [eventId.replace('NSE:ABC:2024-05-02:', ''), ratio && `${ratio.new}/${ratio.old}`, amount, status]
        .filter((part) => part !== null)
        .join(' '),
    )
    .sort();

describe('events of a share and a day', () => {
  test('lines that repeat one another are one, in whichever words', () => {
    expect(
      short([
        notice('Annual General Meeting/Dividend - Rs 2 Per Share'),
        notice('AGM/DIV - RS 2.00 PER SH'),
        notice('Annual General Meeting/Dividend - Rs 2 Per Share'),
      ]),
    ).toEqual(['dividend:2 2 applied', 'meeting ignored']);
  });

  test('several actions in one text are several events; two dividends are two', () => {
    expect(
      short([notice('Bonus 1:1/Dividend- Rs 2 Per Share'), notice('Special Dividend - Rs 5 Per Share')]),
    ).toEqual(['bonus 2/1 applied', 'dividend:2 2 applied', 'dividend:5 5 needs_review']);
  });

  test('a line that says it is revised replaces the others of its kind', () => {
    expect(
      short([
        notice('Interim Dividend - Rs 2 Per Share'),
        notice('Interim Dividend - Rs 3 Per Share (Purpose Revised)'),
        notice('Bonus 1:1'),
      ]),
    ).toEqual(['bonus 2/1 applied', 'dividend:3 3 applied']);
  });

  test('of ratios that contradict each other none counts, whichever was read last', () => {
    const early = notice('Bonus 1:1');
    expect(short([early, notice('Bonus 1:2', { readAt: 2 })])).toEqual(['bonus needs_review']);
    expect(short([notice('Bonus 1:2'), { ...early, readAt: 2 }])).toEqual(['bonus needs_review']);
    expect(short([early, notice('Bonus 1:2')])).toEqual(['bonus needs_review']);
    expect(short([early, notice('Bonus 1:2 (Purpose Revised)')])).toEqual(['bonus 3/2 applied']);
  });

  test('of amounts that no list has together a later one may correct the other', () => {
    const two = notice('Dividend - Rs 2 Per Share');
    const three = notice('Dividend - Rs 3 Per Share', { readAt: 2 });
    expect(short([two, three])).toEqual(['dividend:2 2 needs_review', 'dividend:3 3 needs_review']);
    expect(short([two, three, notice('Dividend Rs 2.00', { readAt: 2 })])).toEqual([
      'dividend:2 2 applied',
      'dividend:3 3 applied',
    ]);
    expect(short([two, notice('Dividend', { readAt: 2 })])).toEqual(['dividend:2 2 applied']);
  });

  test('a list that knows less has nothing to say against one that knows the ratio or the amount', () => {
    expect(short([notice('Bonus 1:1'), notice('Bonus', { readAt: 2 })])).toEqual(['bonus 2/1 applied']);
    expect(short([notice('Dividend - Rs 2 Per Share'), notice('Dividend', { readAt: 2 })])).toEqual([
      'dividend:2 2 applied',
    ]);
  });

  test.each([
    ['bonus', '1:2', 'bonus 3/2 applied'],
    ['split', '5:1', 'split 5/1 applied'],
    ['split', '1:5', 'split 5/1 applied'],
    ['split', '10:2', 'split 5/1 applied'],
    ['consolidation', '10:1', 'consolidation 1/10 applied'],
    ['dividend', '2.50', 'dividend:2.5 2.5 applied'],
    ['demerger', null, 'demerger needs_review'],
    ['meeting', null, 'meeting ignored'],
  ])('one’s own list tells %s %s', (toldKind, toldRatio, event) => {
    expect(short([notice('a note', { toldKind, toldRatio })])).toEqual([event]);
  });

  test('of another series than one of shares a ratio says nothing of the share', () => {
    expect(short([notice('Fv Splt Frm Rs 1000 To Rs 500', { series: 'N1' })])).toEqual([
      'split 2/1 needs_review',
    ]);
  });

  test('the same ratio a few days later is a day that was moved, or not: a person has to say', () => {
    const moved = [notice('Bonus 1:1'), notice('Bonus 1:1 (Ex-Date Revised)', { exDate: '2024-05-08' })];
    expect(workOutEvents(moved, []).map(({ status }) => status)).toEqual(['needs_review', 'needs_review']);
    const later = [notice('Bonus 1:1'), notice('Bonus 1:1', { exDate: '2025-05-08' })];
    expect(workOutEvents(later, []).map(({ status }) => status)).toEqual(['applied', 'applied']);
  });

  test('a decision stands above what the lists say', () => {
    const eventId = 'NSE:ABC:2024-05-02:demerger';
    const decided = (ratio: EventDecision['ratio']) => [{ eventId, ratio, decidedBy: 'me' }];
    expect(short([notice('Demerger')], decided({ new: 5, old: 4 }))).toEqual(['demerger 5/4 applied']);
    expect(short([notice('Demerger')], decided(null))).toEqual(['demerger ignored']);
    expect(short([notice('Bonus 1:1')], decided(null))).toEqual(['bonus 2/1 applied']);
  });

  test('the order of the notices does not matter', () => {
    const purposes = [
      'Bonus 1:1',
      'Bonus 1:2',
      'Bonus',
      'Dividend - Rs 2 Per Share',
      'Dividend',
      'Dividend - Rs 2.0 Per Share (Purpose Revised)',
      'Special Dividend - Rs 2 Per Share',
      'Demerger',
    ];
    const notices = fc.array(
      fc
        .record({ purpose: fc.constantFrom(...purposes), readAt: fc.integer({ min: 1, max: 3 }) })
        .map(({ purpose, readAt }) => notice(purpose, { readAt })),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(
        notices.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
        ),
        ([all, shuffled]) => {
          expect(short(shuffled)).toEqual(short(all));
        },
      ),
    );
  });
});

test('price factors are exact to twenty decimals', () => {
  expect(priceFactor({ new: 2, old: 1 })).toBe('0.5');
  expect(priceFactor({ new: 3, old: 2 })).toBe('0.66666666666666666667');
  expect(priceFactor({ new: 1, old: 10 })).toBe('10');
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100_000 }),
      fc.integer({ min: 1, max: 100_000 }),
      (after, before) => {
        expect(Number(priceFactor({ new: after, old: before }))).toBeCloseTo(before / after, 10);
      },
    ),
  );
});
