import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { computeEvents, type NoticeOfShare } from '../../../src/jobs/events/compute-events.ts';
import { withEventsOfOtherExchange } from '../../../src/jobs/events/update-events.ts';
import type { LineElsewhere } from '../../../src/load/corporate-events.ts';
import type { EventDecision } from '../../../src/state/events/decisions.ts';
import { forAll } from '../../support/for-all.ts';

type Exchange = 'NSE' | 'BSE';

const notice = (
  exchange: Exchange,
  exDate: string,
  purpose: string,
  more: Partial<NoticeOfShare> = {},
): NoticeOfShare => ({
  exchange,
  symbol: exchange === 'NSE' ? 'ABC' : 'ABCLTD',
  series: '',
  exDate,
  purpose,
  scripCode: exchange === 'BSE' ? 500_001 : null,
  recordDate: null,
  statedKind: null,
  statedRatio: null,
  announced: null,
  mayBeCut: false,
  symbolOfDay: false,
  readAt: 1,
  instrumentId: exchange === 'NSE' ? 'NSE:INE000A01010' : 'BSE:500001',
  ...more,
});

const line = (exchange: Exchange, symbol: string, firstSeen = '2020-01-01'): LineElsewhere => {
  const [nse, bse] = ['NSE:INE000A01010', 'BSE:500001'];
  return exchange === 'NSE'
    ? { shareId: bse, exchange, instrumentId: nse, symbol, firstSeen }
    : { shareId: nse, exchange, instrumentId: bse, symbol, firstSeen };
};
const LINES = [line('NSE', 'ABC'), line('BSE', 'ABCLTD')];

const events = (
  notices: readonly NoticeOfShare[],
  { lines = LINES, decisions = [] as readonly EventDecision[] } = {},
) => {
  const eventsByExchange = new Map(
    (['NSE', 'BSE'] as const).map((exchange) => [
      exchange,
      computeEvents(
        notices.filter((notice) => notice.exchange === exchange),
        decisions,
      ),
    ]),
  );
  return [...withEventsOfOtherExchange(eventsByExchange, lines, decisions).values()]
    .flat()
    .map(({ eventId, ratio, amount, status, listedBy }) =>
      [eventId, ratio ? `${ratio.new}/${ratio.old}` : amount, status, `by ${listedBy}`].join(' '),
    )
    .sort();
};

describe('events that one exchange lists', () => {
  test('reach the line of the share on the other, where that lists nothing', () => {
    expect(
      events([
        notice('BSE', '2024-05-02', 'Bonus issue 1:1'),
        notice('NSE', '2024-08-02', 'Special Dividend - Rs 5 Per Share'),
        notice('NSE', '2024-09-02', 'Annual General Meeting'),
      ]),
    ).toEqual([
      'BSE:ABCLTD:2024-05-02:bonus 2/1 applied by BSE',
      'BSE:ABCLTD:2024-08-02:dividend:5 5 needs_review by NSE',
      'NSE:ABC:2024-05-02:bonus 2/1 applied by BSE',
      'NSE:ABC:2024-08-02:dividend:5 5 needs_review by NSE',
      'NSE:ABC:2024-09-02:meeting  ignored by NSE',
    ]);
  });

  test('leave alone what the other says of that kind: another ratio, another day, something unclear', () => {
    for (const noticeOfNse of [
      notice('NSE', '2024-05-02', 'Bonus 1:2'),
      notice('NSE', '2024-05-06', 'Bonus 1:1'),
      notice('NSE', '2024-05-02', 'Bonus Of Shares'),
      // The same in other words.
      notice('NSE', '2024-05-03', 'Face Value Split From Rs 10 To Rs 5'),
    ]) {
      const texts = events([notice('BSE', '2024-05-02', 'Bonus issue 1:1'), noticeOfNse]);
      expect(texts).toHaveLength(2);
      expect(texts.filter((text) => text.endsWith('by BSE'))).toEqual([
        'BSE:ABCLTD:2024-05-02:bonus 2/1 applied by BSE',
      ]);
    }
  });

  test('are added one by one: a split that both list, and a bonus that one does', () => {
    const texts = events([
      notice('BSE', '2024-05-02', 'Bonus issue 1:1'),
      notice('BSE', '2024-05-02', 'Stock Split From Rs.10/- to Rs.5/-'),
      notice('NSE', '2024-05-03', 'Face Value Split From Rs 10 To Rs 5'),
      notice('NSE', '2024-03-01', 'Bonus 1:1'),
    ]);
    expect(texts.filter((text) => text.startsWith('NSE:'))).toEqual([
      'NSE:ABC:2024-03-01:bonus 2/1 applied by NSE',
      'NSE:ABC:2024-05-02:bonus 2/1 applied by BSE',
      'NSE:ABC:2024-05-03:split 2/1 applied by NSE',
    ]);
  });

  test('bring the amount of a dividend that the other lists without one; a dividend of another security says nothing', () => {
    expect(
      events([
        notice('BSE', '2024-05-02', 'Dividend - Rs. - 2.0000'),
        notice('NSE', '2024-05-02', 'Dividend'),
        notice('BSE', '2024-09-02', 'Dividend - Rs. - 3.0000'),
        notice('NSE', '2024-09-02', 'Dividend On Preference Shares - Rs 8'),
      ]),
    ).toEqual([
      'BSE:ABCLTD:2024-05-02:dividend:2 2 applied by BSE',
      'BSE:ABCLTD:2024-09-02:dividend:3 3 applied by BSE',
      'NSE:ABC:2024-05-02:dividend:2 2 applied by BSE',
      'NSE:ABC:2024-09-02:dividend  ignored by NSE',
      'NSE:ABC:2024-09-02:dividend:3 3 applied by BSE',
    ]);
  });

  test('bring the ratio of what the source service states without one, unless a person has decided', () => {
    const announced = { type: 'Stock Split', detail: '00050001' };
    const notices = [
      notice('BSE', '2024-05-02', 'Stock Split 00050001', { announced }),
      notice('NSE', '2024-05-02', 'Face Value Split From Rs 10 To Rs 2'),
    ];
    for (const inOrder of [notices, notices.toReversed()]) {
      expect(events(inOrder)).toEqual([
        'BSE:ABCLTD:2024-05-02:split 5/1 applied by NSE',
        'NSE:ABC:2024-05-02:split 5/1 applied by NSE',
      ]);
    }
    const eventId = 'BSE:ABCLTD:2024-05-02:split';
    const decided = events(notices, {
      decisions: [{ eventId, ratio: { new: 4, old: 1 }, decidedBy: 'test', decidedAt: '2026' }],
    });
    expect(decided[0]).toBe(`${eventId} 4/1 applied by BSE`);
    // Alone it waits for a person, on both exchanges.
    expect(events(notices.slice(0, 1))).toEqual([
      `${eventId}  needs_review by BSE`,
      'NSE:ABC:2024-05-02:split  needs_review by BSE',
    ]);
  });

  test('count as decided for the event, or for the line alone', () => {
    const notices = [notice('BSE', '2024-05-02', 'Spin Off')];
    const at = (exchange: string, eventId: string, ratio: EventDecision['ratio']) => ({
      eventId: `${exchange}:${eventId}:2024-05-02:demerger`,
      ratio,
      decidedBy: 'test',
      decidedAt: '2026',
    });
    const ofShare = at('BSE', 'ABCLTD', { new: 100, old: 94 });
    expect(events(notices, { decisions: [ofShare] })).toEqual([
      'BSE:ABCLTD:2024-05-02:demerger 100/94 applied by BSE',
      'NSE:ABC:2024-05-02:demerger 100/94 applied by BSE',
    ]);
    expect(events(notices, { decisions: [ofShare, at('NSE', 'ABC', null)] })[1]).toContain('ignored');
  });

  test('keep their name when the line is renamed later', () => {
    const notices = [notice('BSE', '2024-05-02', 'Bonus issue 1:1')];
    const before = [line('NSE', 'ABC', '2023-01-01')];
    expect(events(notices, { lines: before })).toEqual(
      events(notices, { lines: [...before, line('NSE', 'NEWNAME', '2024-06-01')] }),
    );
  });

  test('reach each of two lines with one symbol, in whatever order these are', () => {
    const old = line('BSE', 'ABCLTD', '2015-01-01');
    const later = { ...line('BSE', 'ABCLTD', '2024-06-01'), instrumentId: 'BSE:500002' };
    const lines = [old, later, line('NSE', 'ABC'), { ...line('NSE', 'ABC'), shareId: 'BSE:500002' }];
    const notices = [
      notice('NSE', '2024-05-02', 'Bonus issue 1:1'),
      notice('NSE', '2024-08-02', 'Bonus issue 1:2'),
      // Here the exchange lists it for one of its lines.
      notice('BSE', '2024-10-02', 'Bonus issue 1:3', { instrumentId: 'BSE:500002' }),
      notice('NSE', '2024-10-02', 'Bonus issue 1:3'),
    ];
    forAll([fc.shuffledSubarray(lines, { minLength: lines.length })], (shuffled) => {
      expect(events(notices, { lines: shuffled }).filter((text) => text.startsWith('BSE'))).toEqual([
        'BSE:500001:2024-08-02:bonus 3/2 applied by NSE',
        'BSE:500001:2024-10-02:bonus 4/3 applied by NSE',
        'BSE:500002:2024-05-02:bonus 2/1 applied by NSE',
        'BSE:ABCLTD:2024-05-02:bonus 2/1 applied by NSE',
        'BSE:ABCLTD:2024-08-02:bonus 3/2 applied by NSE',
        'BSE:ABCLTD:2024-10-02:bonus 4/3 applied by BSE',
      ]);
    });
  });

  test('give both lines one factor, whichever exchange lists them', () => {
    const purpose = fc.constantFrom('Bonus 1:1', 'Bonus 1:2', 'Stock Split From Rs.10/- to Rs.2/-');
    const day = fc.constantFrom('01-02', '03-04', '05-06', '07-08', '09-10').map((date) => `2024-${date}`);
    const drawnEvent = fc.record({ exDate: day, purpose, listed: fc.constantFrom('NSE', 'BSE', 'both') });
    forAll([fc.uniqueArray(drawnEvent, { selector: ({ exDate }) => exDate.slice(0, 7) })], (all) => {
      const notices = all.flatMap(({ exDate, purpose: text, listed }) =>
        (['NSE', 'BSE'] as const)
          .filter((exchange) => listed === exchange || listed === 'both')
          .map((exchange) => notice(exchange, exDate, text)),
      );
      const texts = events(notices).map((text) => text.replace(/ by .*/, ''));
      const of = (prefix: string) =>
        texts.filter((text) => text.startsWith(prefix)).map((text) => text.slice(prefix.length));
      expect(of('NSE:ABC:')).toHaveLength(all.length);
      expect(of('NSE:ABC:')).toEqual(of('BSE:ABCLTD:'));
    });
  });
});
