import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isReinvested } from '../../../src/extract/corporate-actions/purpose.ts';
import { computeEvents, type NoticeOfShare, priceFactor } from '../../../src/jobs/events/compute-events.ts';
import type { EventDecision } from '../../../src/state/events/decisions.ts';
import { forAll } from '../../support/for-all.ts';

const notice = (purpose: string, more: Partial<NoticeOfShare> = {}): NoticeOfShare => ({
  exchange: 'NSE',
  symbol: 'ABC',
  series: 'EQ',
  exDate: '2024-05-02',
  purpose,
  scripCode: null,
  recordDate: null,
  statedKind: null,
  statedRatio: null,
  announced: null,
  mayBeCut: false,
  instrumentId: null,
  symbolOfDay: false,
  readAt: 1,
  ...more,
});

const short = (notices: readonly NoticeOfShare[], decisions: readonly EventDecision[] = []) =>
  computeEvents(notices, decisions)
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

  test('of amounts that may be the same dividend a person has to say which is right', () => {
    const two = notice('Dividend - Rs 2 Per Share');
    const unclear = ['dividend:2 2 needs_review', 'dividend:3 3 needs_review'];
    // Whether one list has both or each has one, and in whichever order they come.
    expect(short([two, notice('Dividend - Rs 3 Per Share')])).toEqual(unclear);
    expect(short([two, notice('Dividend - Rs 3 Per Share', { readAt: 2 })])).toEqual(unclear);
    expect(short([two, notice('Interim Dividend - Rs 3 Per Share')])).toEqual(unclear);
    expect(short([notice('AGM/Dividend Rs 2'), notice('Final Dividend - Rs 3')])).toEqual([
      ...unclear,
      'meeting ignored',
    ]);
    expect(short([two, notice('Dividend', { readAt: 2 })])).toEqual(['dividend:2 2 applied']);
  });

  test('dividends that a text or their names tell apart are several, also of one amount', () => {
    expect(short([notice('Final Dividend - Rs 2/Interim Dividend - Rs 3')])).toEqual([
      'dividend:2 2 applied',
      'dividend:3 3 applied',
    ]);
    expect(short([notice('AGM/Dividend - Rs 2'), notice('Interim Dividend - Rs 3')])).toEqual([
      'dividend:2 2 applied',
      'dividend:3 3 applied',
      'meeting ignored',
    ]);
    expect(short([notice('Dividend - Re 1/ Interim Dividend Re 1')])).toEqual([
      'dividend:1 1 applied',
      'dividend:1#2 1 applied',
    ]);
    const both = notice('Dividend - Rs 5 Per Share/Special Dividend - Rs 5 Per Share');
    expect(short([both, both])).toEqual(['dividend:5 5 applied', 'dividend:5#2 5 needs_review']);
    expect(short([notice('Dividend - Rs 5/Dividend - Rs 5')])).toEqual([
      'dividend:5 5 applied',
      'dividend:5#2 5 applied',
    ]);
  });

  test('a trust distributes one sum, which lists state as a whole or by its parts', () => {
    const parts = notice('Interest Amount - Rs 1.20/ Return On Capital - Re 0.80', { series: 'IV' });
    const counted = ['interest:1.2 1.2 applied', 'other:0.8 0.8 applied'];
    expect(short([parts])).toEqual(counted);
    const whole = notice('Distribution - Rs 2 Per Unit', { series: 'IV' });
    expect(short([parts, whole])).toEqual(counted);
    expect(
      short([
        { ...whole, symbol: 'OLD', readAt: 2, instrumentId: 'NSE:X' },
        { ...parts, instrumentId: 'NSE:X' },
      ]),
    ).toEqual(counted);
    expect(short([parts, notice('Distribution - Rs 2.50 Per Unit', { series: 'IV' })])).toEqual([
      'dividend:2.5 2.5 needs_review',
      ...counted.map((event) => event.replace('applied', 'needs_review')),
    ]);
    expect(
      short([
        parts,
        notice('Interest Amount - Rs 1.30/ Return On Capital - Re 0.70 (Purpose Revised)', { series: 'IV' }),
      ]),
    ).toEqual(['interest:1.3 1.3 applied', 'other:0.7 0.7 applied']);
    expect(short([notice('Return Of Capital - Rs 3 Per Unit/Scheme Of Arrangement')])).toEqual([
      'other needs_review',
      'other:3 3 applied',
    ]);
    // Interest on a debenture is not paid on a share.
    expect(short([notice('Interest - Rs 1.20 Per Unit', { series: 'N1' })])).toEqual([
      'interest:1.2 1.2 ignored',
    ]);
  });

  test('total returns reinvest a special dividend, unless its amount is unclear as well', () => {
    const effectsOf = (...notices: readonly NoticeOfShare[]) =>
      computeEvents(notices, []).map(
        (event) => `${event.label} ${event.status} ${isReinvested(event) ? 'reinvested' : 'not'}`,
      );
    const unclear = 'special needs_review not';
    const [five, six] = [notice('Special Dividend - Rs 5 Per Share'), notice('Special Dividend - Rs 6')];
    expect(effectsOf(five)).toEqual(['special needs_review reinvested']);
    expect(effectsOf(five, six)).toEqual([unclear, unclear]);
    expect(effectsOf(notice('Special Dividend - Rs 5 (Cancelled)'))).toEqual([unclear]);
    expect(effectsOf(notice('Special Dividend'))).toEqual([unclear]);
    expect(effectsOf(five, { ...five, exDate: '2024-05-09' })).toEqual([unclear, unclear]);
  });

  test('a revised dividend replaces those of its name, and a ratio that a revised line leaves out is unclear', () => {
    expect(
      short([
        notice('Interim Dividend - Rs 3'),
        notice('Interim Dividend - Rs 4 (Purpose Revised)'),
        notice('Final Dividend - Rs 6'),
      ]),
    ).toEqual(['dividend:4 4 applied', 'dividend:6 6 applied']);
    expect(
      short([notice('Face Value Split From Rs 10 To Rs 2'), notice('Bonus 4:1 (Purpose Revised)')]),
    ).toEqual(['bonus 5/1 applied', 'split 5/1 needs_review']);
    expect(short([notice('Bonus 1:1'), notice('Annual General Meeting (Purpose Revised)')])).toEqual([
      'bonus 2/1 needs_review',
      'meeting ignored',
    ]);
  });

  test('if a line says that something is cancelled or put off, nothing of that day counts', () => {
    expect(short([notice('Bonus 1:1'), notice('Bonus 1:1 Cancelled')])).toEqual(['bonus 2/1 needs_review']);
    expect(short([notice('Interim Dividend - Rs 2 (Cancelled)')])).toEqual(['dividend:2 2 needs_review']);
    expect(short([notice('Dividend - Rs 2 Deferred')])).toEqual(['dividend:2 2 needs_review']);
  });

  describe('reported under two symbols of the share', () => {
    const old = { symbol: 'OLD', instrumentId: 'NSE:1' };
    const renamed = { symbol: 'NEW', instrumentId: 'NSE:1' };
    const events = (notices: readonly NoticeOfShare[], decisions: readonly EventDecision[] = []) =>
      computeEvents(notices, decisions)
        .map(({ eventId, status }) => `${eventId.replace('NSE:', '')} ${status}`)
        .sort();

    test('has one fate: ratios and amounts that differ, days that moved, decisions', () => {
      expect(events([notice('Bonus 1:2', old), notice('Bonus 1:1', { ...renamed, readAt: 2 })])).toEqual([
        'NEW:2024-05-02:bonus needs_review',
        'OLD:2024-05-02:bonus needs_review',
      ]);
      expect(
        events([notice('Bonus 1:1', old), notice('Bonus 1:1', { ...renamed, exDate: '2024-05-09' })]),
      ).toEqual(['NEW:2024-05-09:bonus needs_review', 'OLD:2024-05-02:bonus needs_review']);
      expect(events([notice('Dividend Rs 2.5', old), notice('Dividend Rs 2', renamed)])).toEqual([
        'NEW:2024-05-02:dividend:2 needs_review',
        'OLD:2024-05-02:dividend:2.5 needs_review',
      ]);
      const both = [notice('Bonus 1:1', old), notice('Bonus 1:1', renamed)];
      expect(events(both)).toEqual(['NEW:2024-05-02:bonus applied', 'OLD:2024-05-02:bonus applied']);
      const decision = {
        eventId: 'NSE:OLD:2024-05-02:bonus',
        ratio: null,
        decidedBy: 'me',
        decidedAt: '2026',
      };
      expect(events(both, [decision])).toEqual([
        'NEW:2024-05-02:bonus ignored',
        'OLD:2024-05-02:bonus ignored',
      ]);
      // Of decisions under several symbols the last one counts, for all rows of the event.
      const later = {
        eventId: 'NSE:NEW:2024-05-02:bonus',
        ratio: { new: 3, old: 1 },
        decidedBy: 'me',
        decidedAt: '2027',
      };
      for (const decisions of [
        [decision, later],
        [later, decision],
      ]) {
        const events = computeEvents(
          both.map((notice) => ({ ...notice, instrumentId: 'INE1' })),
          decisions,
        );
        expect(events.map(({ status, ratio }) => [status, ratio])).toEqual(
          Array.from({ length: 2 }, () => ['applied', later.ratio]),
        );
      }
    });
  });

  test.each([
    ['Final Dividend', '14', 'dividend:14 14 applied'],
    ['Special Dividend', 'Rs. 14.50', 'dividend:14.5 14.5 needs_review'],
    ['Stock Split', '10:2', 'split 5/1 applied'],
    ['Bonus', '1:2', 'bonus 3/2 applied'],
    ['Bonus issue cancelled', '1:2', 'bonus 3/2 needs_review'],
    ['Rights', '1:2', 'rights 3/2 needs_review'],
    ['Annual General Meeting', '14', 'meeting ignored'],
    ['Dividend', '0002.5000', 'dividend:2.5 2.5 applied'],
    ['Dividend', '0.0000', 'dividend needs_review'],
    ['Dividend', '00000500', 'dividend needs_review'],
    ['Bonus issue', '00010002', 'bonus needs_review'],
    ['Bonus issue', '10000001', 'bonus needs_review'],
    ['Stock Split', null, 'split needs_review'],
    ['Stock Split From Rs.10/- to Rs.2/-', '00100002', 'split 5/1 applied'],
    ['Right Issue of Equity Shares', '00100001', 'rights needs_review'],
    ['Annual Book Closure', '0', 'other ignored'],
    ['Buy Back of Shares', '00000000', 'buyback ignored'],
  ])('the source service announces %s %s', (type, detail, event) => {
    expect(short([notice(`${type} ${detail}`, { announced: { type, detail } })])).toContain(event);
  });

  test.each([1, 3])('what a list and the source service say of an event is one event (%i)', (readAt) => {
    const service = (type: string, detail: string | null = null) =>
      notice(type, { announced: { type, detail }, readAt });
    const list = (text: string) => notice(text, { readAt: 2 });
    const eventsOf = (...notices: Parameters<typeof short>[0]) => short(notices);
    const split = list('Stock  Split From Rs.10/- to Rs.2/-');
    expect(eventsOf(split, service('Stock Split', '00100002'))).toEqual(['split 5/1 applied']);
    expect(eventsOf(split, service('Stock Split', '10:2'))).toEqual(['split 5/1 applied']);
    expect(eventsOf(split, service('Stock Split', '10:1'))).toEqual(['split needs_review']);
    const rights = list('Rights 10:1 @ Premium Rs 2');
    expect(eventsOf(rights, service('Right Issue of Equity Shares', '00100001'))).toEqual([
      'rights 11/1 2 needs_review',
    ]);
    const dividends = [list('Interim Dividend - Rs. - 5.0000'), list('Special Dividend - Rs. - 10.0000')];
    const applied = ['dividend:10 10 needs_review', 'dividend:5 5 applied'];
    expect(eventsOf(...dividends)).toEqual(applied);
    expect(eventsOf(...dividends, service('Dividend', '5'), service('Dividend', '10'))).toEqual(applied);
    expect(eventsOf(...dividends, service('Dividend', '00000500'))).toEqual(applied);
    // A third amount may correct one of them.
    expect(eventsOf(...dividends, service('Dividend', '6'))).toEqual([
      'dividend:10 10 needs_review',
      'dividend:5 5 needs_review',
      'dividend:6 6 needs_review',
    ]);
  });

  test('a number at the end of a text that its list may have cut is unclear', () => {
    expect(short([notice('INTDIV - RS 1.5/BONUS 1:1', { mayBeCut: true })])).toEqual([
      'bonus 2/1 needs_review',
      'dividend:1.5 1.5 applied',
    ]);
  });

  test('what is paid on other papers than shares is no dividend of the share', () => {
    expect(short([notice('DIVIDEND - RS 80 PER SH', { series: 'P1' })])).toEqual(['dividend:80 80 ignored']);
    expect(short([notice('Dividend On Preference Shares - Rs 8')])).toEqual(['dividend ignored']);
    // Nor does it say anything against one of the share, whichever comes last.
    const share = notice('Dividend - Rs 2');
    for (const readAt of [1, 2]) {
      const others = ['80', '2'].map((amount) => notice(`DIVIDEND - RS ${amount}`, { series: 'P1', readAt }));
      expect(short([share, ...others])).toEqual(['dividend:2 2 applied', 'dividend:80 80 ignored']);
    }
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
  ])('one’s own list states %s %s', (statedKind, statedRatio, event) => {
    expect(short([notice('a note', { statedKind, statedRatio })])).toEqual([event]);
  });

  test('the ratio of a series that is not one of shares says nothing of the share', () => {
    expect(short([notice('Fv Splt Frm Rs 1000 To Rs 500', { series: 'N1' })])).toEqual([
      'split 2/1 needs_review',
    ]);
  });

  test('the same ratio a few days later is a day that was moved, or not: a person has to say', () => {
    const moved = [notice('Bonus 1:1'), notice('Bonus 1:1 (Ex-Date Revised)', { exDate: '2024-05-08' })];
    expect(computeEvents(moved, []).map(({ status }) => status)).toEqual(['needs_review', 'needs_review']);
    const later = [notice('Bonus 1:1'), notice('Bonus 1:1', { exDate: '2025-05-08' })];
    expect(computeEvents(later, []).map(({ status }) => status)).toEqual(['applied', 'applied']);
    const dividends = [
      notice('Interim Dividend - Re 0.70'),
      notice('Interim Dividend - Re 0.70', { exDate: '2024-05-10' }),
    ];
    expect(computeEvents(dividends, []).map(({ status }) => status)).toEqual([
      'needs_review',
      'needs_review',
    ]);
  });

  test('of two days of one event, the other counts once one is ignored by decision', () => {
    const statuses = (purpose: string, ignored: string[]) =>
      computeEvents(
        ['2024-05-02', '2024-05-07'].map((exDate) => notice(purpose, { exDate })),
        ignored.map((eventId) => ({ eventId, ratio: null, decidedBy: 'me', decidedAt: '2026' })),
      ).map(({ status }) => status);
    const [first, second] = ['NSE:ABC:2024-05-02:bonus', 'NSE:ABC:2024-05-07:bonus'] as const;
    expect(statuses('Bonus 1:1', [first])).toEqual(['ignored', 'applied']);
    expect(statuses('Bonus 1:1', [second])).toEqual(['applied', 'ignored']);
    expect(statuses('Bonus 1:1', [first, second])).toEqual(['ignored', 'ignored']);
    expect(statuses('Dividend - Rs 2', ['NSE:ABC:2024-05-02:dividend:2'])).toEqual(['ignored', 'applied']);
    // A decision about something else says nothing about the day.
    expect(statuses('Bonus 1:1', ['NSE:ABC:2024-05-02:split'])).toEqual(['needs_review', 'needs_review']);
  });

  test('a line with another ratio or amount applies nothing that had to be reviewed', () => {
    /** A line of one event: its kind, what it states of it (null: nothing), and the notice. */
    interface Line {
      readonly kind: string;
      readonly terms: string | null;
      readonly notice: NoticeOfShare;
    }
    const trust = fc.constantFrom('1.2', '0.8', '2', '1.5');
    const terms = fc.constantFrom('1', '2', '3', '4', '5');
    const texts: fc.Arbitrary<readonly [kind: string, terms: string | null, text: string, series?: string]> =
      fc.oneof(
        terms.map((n) => ['bonus', n, `Bonus ${n}:1`] as const),
        terms.map((n) => ['split', n, `Face Value Split From Rs ${Number(n) + 1} To Re 1`] as const),
        fc
          .tuple(fc.constantFrom('', 'Interim ', 'Final ', 'Special '), terms)
          .map(([name, n]) => ['dividend', n, `${name}Dividend - Rs ${n}`] as const),
        trust.map((n) => ['interest', n, `Interest Amount - Rs ${n}`, 'IV'] as const),
        trust.map((n) => ['other', n, `Return Of Capital - Rs ${n}`, 'IV'] as const),
        fc.constantFrom(
          ['bonus', null, 'Bonus'] as const,
          ['split', null, 'Stock Split'] as const,
          ['dividend', null, 'Dividend'] as const,
          ['demerger', null, 'Demerger'] as const,
        ),
      );
    const line: fc.Arbitrary<Line> = fc
      .record({
        text: texts,
        exDate: fc.constantFrom('2024-07-18', '2024-07-21', '2024-08-16'),
        symbol: fc.constantFrom('ABC', 'ABCD'),
        series: fc.constantFrom('EQ', 'EQ', 'EQ', 'N1'),
        mayBeCut: fc.boolean(),
        readAt: fc.integer({ min: 1, max: 3 }),
        isRevised: fc.integer({ max: 9 }).map((n) => n === 0),
      })
      .map(({ text: [kind, terms, purpose, series], isRevised, ...more }) => ({
        kind,
        terms,
        notice: notice(isRevised ? `${purpose} (Purpose Revised)` : purpose, {
          ...more,
          series: series ?? more.series,
          instrumentId: 'NSE:1',
        }),
      }));
    const isAnother = (lines: readonly Line[], { kind, terms: addedTerms, notice: { purpose } }: Line) =>
      addedTerms !== null &&
      !purpose.includes('Revised') &&
      !lines.some((other) => other.kind === kind && other.terms === addedTerms);
    const sets = fc
      .tuple(fc.array(line, { minLength: 1, maxLength: 6 }), line)
      .filter(([lines, added]) => isAnother(lines, added));
    forAll([sets], { numRuns: 2_000 }, ([lines, added]) => {
      const notices = lines.map(({ notice: listed }) => listed);
      const before = new Map(computeEvents(notices, []).map((event) => [event.eventId, event]));
      for (const after of computeEvents([...notices, added.notice], [])) {
        const event = before.get(after.eventId);
        const linesWithTerms = lines.filter(
          ({ kind, terms: state, notice: { exDate } }) =>
            kind === after.kind && exDate === after.exDate && state !== null,
        );
        // If no line stated a ratio or amount, that of the added line is not another one.
        if (event === undefined || event.status !== 'needs_review' || linesWithTerms.length === 0) continue;
        expect(after.status, after.eventId).not.toBe('applied');
        if (!isReinvested(event)) expect(isReinvested(after), after.eventId).toBe(false);
      }
    });
  });

  test('a split that a list has for two days waits for a person, also once another ratio is listed for one of them', () => {
    const split = (exDate: string, to: string) =>
      notice(`Face Value Split From Rs 10 To Rs ${to}`, { exDate });
    const lists = [split('2024-07-18', '2'), split('2024-07-21', '2'), split('2024-07-21', '1')];
    expect(computeEvents(lists, []).map(({ status }) => status)).toEqual(['needs_review', 'needs_review']);
    const ignored = { eventId: 'NSE:ABC:2024-07-21:split', ratio: null, decidedBy: 'me', decidedAt: '2026' };
    expect(computeEvents(lists, [ignored]).map(({ status }) => status)).toEqual(['applied', 'ignored']);
    const dividends = [
      ['2024-07-18', '2'],
      ['2024-07-21', '2'],
      ['2024-07-21', '3'],
    ].map(([exDate, amount]) => notice(`Dividend - Rs ${amount}`, { exDate: exDate as string }));
    expect(new Set(computeEvents(dividends, []).map(({ status }) => status))).toEqual(
      new Set(['needs_review']),
    );
  });

  test('a decision stands above what the lists say', () => {
    const eventId = 'NSE:ABC:2024-05-02:demerger';
    const decided = (ratio: EventDecision['ratio']) => [
      { eventId, ratio, decidedBy: 'me', decidedAt: '2026' },
    ];
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
      'Final Dividend - Rs 2/Interim Dividend - Rs 2',
      'Interim Dividend - Rs 3',
      'Bonus 1:1 Cancelled',
    ];
    const notices = fc.array(
      fc
        .record({
          purpose: fc.constantFrom(...purposes),
          readAt: fc.integer({ min: 1, max: 3 }),
          symbol: fc.constantFrom('ABC', 'ABCD'),
        })
        .map(({ purpose, ...more }) => notice(purpose, { ...more, instrumentId: 'NSE:1' })),
      { maxLength: 6 },
    );
    forAll(
      [
        notices.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
        ),
      ],
      ([all, shuffled]) => {
        expect(short(shuffled)).toEqual(short(all));
      },
    );
  });
});

test('price factors are exact to twenty decimals', () => {
  expect(priceFactor({ new: 2, old: 1 })).toBe('0.5');
  expect(priceFactor({ new: 3, old: 2 })).toBe('0.66666666666666666667');
  expect(priceFactor({ new: 1, old: 10 })).toBe('10');
  forAll([fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 1, max: 100_000 })], (after, before) => {
    expect(Number(priceFactor({ new: after, old: before }))).toBeCloseTo(before / after, 10);
  });
});
