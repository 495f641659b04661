import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type PurposeEvent, readPurpose } from '../../../src/extract/corporate-actions/purpose.ts';
import { forAll } from '../../support/for-all.ts';

/** An event in short: `bonus 2/1`, `dividend Rs 2.50`, `rights 5/4 Rs 45 needs_review`. */
function short({ kind, ratio, amount, status }: PurposeEvent): string {
  return [
    kind,
    ...(ratio === null ? [] : [`${ratio.new}/${ratio.old}`]),
    ...(amount === null ? [] : [`Rs ${amount}`]),
    ...(status === 'applied' ? [] : [status]),
  ].join(' ');
}

const read = (text: string) => readPurpose(text).events.map(short);

const CLEAR = [
  ['Bonus 1:1', 'bonus 2/1'],
  ['FV Split Rs 10 To Rs 2', 'split 5/1'],
  ['Consolidation From Re 1 To Rs 10', 'consolidation 1/10'],
] as const;
const UNCLEAR = [
  ['Bonus', 'bonus'],
  ['FV Split', 'split'],
  ['Consolidation', 'consolidation'],
  ['Capital Reduction', 'capital_reduction'],
] as const;

test.each(CLEAR.flatMap((clear) => UNCLEAR.map((unclear) => [clear, unclear] as const)))(
  'no ratio is applied beside one of the same text that is unclear: %s, %s',
  ([text, event], [unclear, kind]) => {
    expect(read(text)).toEqual([event]);
    expect(read(`${unclear}/${text}`)).toEqual([`${kind} needs_review`, `${event} needs_review`]);
    expect(read(`${text}/${unclear}`)).toEqual([`${event} needs_review`, `${kind} needs_review`]);
  },
);

describe('texts of the exchanges', () => {
  test.each([
    [' Bonus 1:2', ['bonus 3/2']],
    ['Bonus- 1:1', ['bonus 2/1']],
    ['Bonus  1: 2', ['bonus 3/2']],
    ['Bonus issue 1:1', ['bonus 2/1']],
    ['Bonus 1:1/Dividend- Rs 2 Per Share', ['bonus 2/1', 'dividend Rs 2']],
    ['Face Value Split (Sub-Division) - From Rs 10/- Per Share To Re 1/- Per Share', ['split 10/1']],
    ['Face Value Split (Sub-Division) - From Rs 10 /- Per Share To Rs 2.50/- Per Share', ['split 4/1']],
    ['Face Value Split (Sub-Division) - From Rs10/- Per Share To Rs4/- Per Share', ['split 5/2']],
    ['Fv Splt Frm Rs 10 To Re 1', ['split 10/1']],
    ['FVSPLT FRM RS 10 TO RS 5', ['split 2/1']],
    ['Face Value Split From Rs 10 To Rs 2', ['split 5/1']],
    ['Stock  Split From Rs.10/- to Rs.1/-', ['split 10/1']],
    [
      'Bonus 1:1/Face Value Split (Sub-Division) - From Rs 5/- Per Share To Re 1/- Per Share',
      ['bonus 2/1', 'split 5/1'],
    ],
    ['Consolidation Of Equity Shares From Re 1 Per Share To Rs 10 Per Share', ['consolidation 1/10']],
    [
      'Annual General Meeting/Dividend - Rs 5 Per Share/Bonus 1:2 (Revised)',
      ['meeting ignored', 'dividend Rs 5', 'bonus 3/2'],
    ],
    ['Annual General Meetingdividend - Re 1/- Per Share', ['meeting ignored', 'dividend Rs 1']],
    ['AGM/DIV - RS 2 PER SH    ', ['meeting ignored', 'dividend Rs 2']],
    ['INTDIV - RS 3.50 PER SH', ['dividend Rs 3.50']],
    ['Final Dividend - Rs. - 40.0000', ['dividend Rs 40.0000']],
    ['1st Interim Dividend Rs.7/- Per Share (Purpose Revised)', ['dividend Rs 7']],
    ['DIV RE .50 PER SHARE', ['dividend Rs 0.50']],
    ['Dividend - Rs 1,150/- Per Share', ['dividend Rs 1150']],
    ['Interest Dividend - Re 1 Per Share', ['dividend Rs 1']],
    ['Buyback/Interim Dividend Rs 2/- Per Share', ['buyback ignored', 'dividend Rs 2']],
    ['Interest Payment/Redemption', ['interest ignored', 'other ignored']],
    ['FV SPLIT RS.10 TO RS.2', ['split 5/1']],
    ['FV SPLIT RS.10/- TO RS.2/-', ['split 5/1']],
    ['STOCK SPLIT RS.10 TO RS.5', ['split 2/1']],
    ['FACE VALUE SPLIT RS.10/- TO RS.2/-/BONUS 1:1', ['split 5/1', 'bonus 2/1']],
    ['Face Value Split (Sub-Division) - From Rs 100/- Per Unit To Rs 10/- Per Unit', ['split 10/1']],
    ['Final Dividend - Rs 5/Interim Dividend - Rs 3', ['dividend Rs 5', 'dividend Rs 3']],
    ['Dividend - ₹ 5/- Per Share', ['dividend Rs 5']],
    ['Face Value Split From ₹10/- To ₹2/-', ['split 5/1']],
    ['AGM/DIVRS 2', ['meeting ignored', 'dividend Rs 2']],
    ['INTDV-RS 2', ['dividend Rs 2']],
    ['FDIV RS 2', ['dividend Rs 2']],
  ])('%s', (text, events) => expect(read(text)).toEqual(events));

  test.each([
    ['Dividend', ['dividend needs_review']],
    ['Dividend - Re 0..50 Per Share', ['dividend needs_review']],
    ['Dividend - Rs 12 .50 Per Share', ['dividend needs_review']],
    [
      'Interim Dividend - Rs 5 Per Share Special Dividend - Rs 20 Per Share',
      ['dividend Rs 5', 'dividend Rs 20 needs_review'],
    ],
    ['Rights 1:4 @ Premium Rs 45/-', ['rights 5/4 Rs 45 needs_review']],
    ['Rights 1:4 Partly Paid @ Premium Rs 45/-', ['rights needs_review']],
    ['Right Issue of Equity Shares', ['rights needs_review']],
    ['Demerger', ['demerger needs_review']],
    ['Spin Off', ['demerger needs_review']],
    ['Scheme Of Arrangement', ['other needs_review']],
    ['Reduction of Capital ', ['capital_reduction needs_review']],
    ['Consolidation of Shares', ['consolidation needs_review']],
    [
      'Capital Reduction Rs 10 To Rs 2 / Consolidation Rs 2 To Rs.10',
      ['capital_reduction needs_review', 'consolidation 1/5 needs_review'],
    ],
    ['Stock  Split From Rs./- to Rs./-', ['split needs_review']],
    ['Face Value Split From Rs 2 To Rs 10', ['split needs_review']],
    ['Face Value Split From Rs 10 To Rs 10', ['split needs_review']],
    ['Face Value Split From Rs 10 To Rs 0', ['split needs_review']],
    ['Bonus', ['bonus needs_review']],
    ['Bonus 0:1', ['bonus needs_review']],
    ['Bonus 1:1 Or 2:1', ['bonus needs_review']],
    ['Scheme Of Arangement- Bonus - 1 Debenture For 1 Equity Share Held', ['other needs_review']],
    ['Bonus Ncrps 1:10', ['other needs_review']],
    ['Bonus Dvr 1:10', ['other needs_review']],
    ['Bonus 1:1 And Warrants 1:5', ['bonus 2/1 needs_review', 'other needs_review']],
    ['Bonus 1:1 (Revised To 1:2)', ['bonus needs_review']],
    ['Cancelled/Bonus 1:1', ['bonus 2/1 needs_review', 'other needs_review']],
    ['Bonus 1:1 / Cancellation Of Bonus', ['bonus 2/1 needs_review', 'bonus needs_review']],
    [
      'Face Value Split From Rs 10 To Re 1 And Capital Return',
      ['split 10/1 needs_review', 'other needs_review'],
    ],
    ['Dividend - 20 Per Cent Per Share', ['dividend needs_review']],
    ['Dividend - 50 Paise Per Share', ['dividend needs_review']],
    ['Dividend - Rs 12,50 Per Share', ['dividend needs_review']],
    ['Specia Ldividend - Rs 850 Per Share', ['dividend Rs 850 needs_review']],
    ['Golden Jubilee Dividend - Rs 5 Per Share', ['dividend Rs 5 needs_review']],
    ['MILLENNIUM DIVIDEND RS 40', ['dividend Rs 40 needs_review']],
    ['SPEC DIV RS.50', ['dividend Rs 50 needs_review']],
    ['SP. DIV RS 5', ['dividend Rs 5 needs_review']],
    ['SPDIV RS 10', ['dividend Rs 10 needs_review']],
    ['AGM/DIV-FIN RS.2+SPL RS.10', ['meeting ignored', 'dividend Rs 2', 'dividend Rs 10 needs_review']],
    ['INTDIV-RS8+SPL RS10', ['dividend Rs 8', 'dividend Rs 10 needs_review']],
    ['Interim Dividend - Rs 5 Per Share And Rs 10 Per Share', ['dividend Rs 5', 'other needs_review']],
    ['RGHTS 1:2', ['rights 3/2 needs_review']],
    ['Dividend 200% i.e. Rs 20 Per Share', ['dividend Rs 20']],
    ['Final Dividend @ 200 % I.E. Rs. 20/- Per Share', ['dividend Rs 20']],
    ['Special Dividend 200% i.e. Rs 20 Per Share', ['dividend Rs 20 needs_review']],
    ['Dividend 200% i.e. 20 Per Share', ['dividend needs_review']],
    ['Dividend Rs 2 Per Share Of Face Value Rs 10', ['dividend Rs 2']],
    ['Dividend - Rs 2 Per Equity Share Of Face Value Of Rs 10/- Each', ['dividend Rs 2']],
    ['Dividend - Rs 2 Per Share Of Rs 10', ['dividend needs_review']],
    ['Dividend Of Face Value Rs 10', ['dividend needs_review']],
    ['Dividend 20%', ['dividend needs_review']],
    ['PREF DIVIDEND RS 5', ['dividend ignored']],
    ['Interim Dividend - Rs 2 (Cancelled)', ['dividend Rs 2 needs_review']],
    ['Bonus 1:1 Withdrawn', ['bonus needs_review']],
    ['Hive Off', ['other needs_review']],
    ['Consol Rs 1 To Rs 10', ['other needs_review']],
    ['SPLDIV-RS 2', ['dividend Rs 2 needs_review']],
    ['RGTS 1:1', ['rights 2/1 needs_review']],
    ['CAP REDUCTN', ['capital_reduction needs_review']],
    ['DEMRGR', ['demerger needs_review']],
    ['SCH OF ARNGMT', ['other needs_review']],
    ['AMLGMTN', ['other needs_review']],
    ['Something That Nobody Has Announced Before', ['other needs_review']],
    ['INTRST PAYMNT/PRT RDMPTN', ['interest ignored', 'other ignored']],
    ['Redemption Of Bonds', ['other ignored']],
    ['Annual Book Closure', ['other ignored']],
    ['', ['other ignored']],
  ])('a factor that is not certain is not applied: %s', (text, events) => expect(read(text)).toEqual(events));

  test.each([
    ['Distribution - Rs 6.10 Per Unit', ['dividend Rs 6.10']],
    ['Distribution - Rs. 2.50 Per Unit As Interest', ['dividend Rs 2.50']],
    ['Distribution Rs 3 Per Unit For The First Quarter Of Fy 2018-19(Purpose Revised)', ['dividend Rs 3']],
    [
      'Distribution Rs 5.10 Per Unit Comprising Of Dividend - Re 0.09 Per Unit/Interest Amount - Rs 2.42 Per Unit/Repayment Of Spv Debt - Rs 2.57 Per Unit/Interest On Fixed Deposits- Re 0.02 Per Unit',
      ['dividend Rs 5.10'],
    ],
    [
      'Distribution - Rs 5.80 Per Unit Comprises Of Re 0.18 Per Unit As Interest/ Rs 2.01 Per Unit As Dividend & Rs 3.61 Per Unit As Repayment Of Spv Level Debt',
      ['dividend Rs 5.80'],
    ],
    [
      'Distribution - Rs 2.3711 Per Unit Consistingrs 1.1113 Per Unit - Interest/ Rs 1.1182 Per Unit - Return Of Capital/Dividend - Re 0.1374 Per Unit/ Re 0.0042 Per Unit - Other Income',
      ['dividend Rs 2.3711'],
    ],
    // Stated as a whole and by its parts, which do not add up to it.
    [
      'Distribution - Rs 3 Per Unit Consists Of Interest Re 1 Per Unit/Dividend Re 1 Per Unit',
      ['dividend Rs 3 needs_review'],
    ],
    ['Distribution - Rs 3 Per Unit/Interest - Rs 2 Per Unit/Dividend Re 1 Per Unit', ['dividend Rs 3']],
    ['Distribution - Rs 3 Per Unit/Annual General Meeting', ['dividend Rs 3', 'meeting ignored']],
    [
      'Interest -Rs 2.14/Return On Capital -Rs 3.33/Dividend -Re 0.36 Per Unit',
      ['interest Rs 2.14', 'other Rs 3.33', 'dividend Rs 0.36'],
    ],
    [
      'Interest Income - Rs 1.99 Per Unit/ Dividend - Re 1 Per Unit/Treasury Income Re. 0.01 Per Unit/Spv Debt- Rs 0.24 Per Unit',
      ['interest Rs 1.99', 'dividend Rs 1', 'other Rs 0.01', 'other Rs 0.24'],
    ],
    ['Interest And Principal Debt Repayment - Rs 9.9905 Per Unit', ['interest ignored', 'other Rs 9.9905']],
    ['Dividend - Re 0.06 Per Unit/Fd Refund- 0.03', ['dividend Rs 0.06', 'other needs_review']],
    ['InvIT - Return of Capital', ['other needs_review']],
    ['Interest Amount - Rs 2 Per Unit (Cancelled)', ['interest Rs 2 needs_review']],
    ['Distribution - Rs 3 Per Unit (Cancelled)', ['dividend Rs 3 needs_review']],
    ['Buyback Of Units @ Rs 100 Per Unit', ['buyback ignored']],
  ])('units of a trust: %s', (text, events) => expect(read(text)).toEqual(events));

  test('a text that does not name units is about those of a trust if its line is in a series of trusts', () => {
    const text = 'Nterest Amount- Rs 3.0556/Return Of Capital- Rs 0.2444';
    expect(read(text)).toEqual(['interest Rs 3.0556 ignored', 'other Rs 0.2444 needs_review']);
    expect(readPurpose(text, true).events.map(short)).toEqual(['interest Rs 3.0556', 'other Rs 0.2444']);
  });

  test('a revision is reported', () => {
    expect(readPurpose('Bonus 1:1 (Purpose Revised)')).toMatchObject({ revised: true });
    expect(readPurpose('Bonus 1:1')).toMatchObject({ revised: false });
  });
});

const upTo = (max: number) => fc.integer({ min: 1, max });
const rupees = (value: number) =>
  fc.constantFrom(`${value === 1 ? 'Re' : 'Rs'} ${value}/-`, `Rs ${value}`, `Rs.${value}/-`, `Rs${value} /-`);
const blanks = fc.constantFrom('', ' ', '  ');

/** Texts with the events they report, in the exchanges' wordings. */
const clause: fc.Arbitrary<{ readonly text: string; readonly event: string }> = fc.oneof(
  fc
    .tuple(upTo(50), upTo(50), blanks, fc.constantFrom('Bonus', 'Bonus-', 'Bonus Issue', 'BONUS'))
    .map(([a, b, blank, word]) => ({
      text: `${word} ${a}:${blank}${b}`,
      event: `bonus ${lowest(a + b, b)}`,
    })),
  fc
    .tuple(upTo(1000), upTo(1000))
    .filter(([a, b]) => a > b)
    .chain(([from, to]) =>
      fc
        .tuple(
          rupees(from),
          rupees(to),
          fc.constantFrom('', ' Per Share'),
          fc.constantFrom('Face Value Split (Sub-Division) - From', 'Fv Splt Frm', 'Stock  Split From'),
        )
        .map(([a, b, per, word]) => ({
          text: `${word} ${a}${per} To ${b}${per}`,
          event: `split ${lowest(from, to)}`,
        })),
    ),
  upTo(5000).chain((amount) =>
    fc
      .tuple(
        rupees(amount),
        fc.constantFrom(
          'Interim Dividend -',
          'Dividend',
          'Final Dividend-',
          'Annual General Meeting/Dividend - ',
        ),
      )
      .map(([money, word]) => ({ text: `${word} ${money} Per Share`, event: `dividend Rs ${amount}` })),
  ),
);

function lowest(after: number, before: number): string {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  const by = divisor(after, before);
  return `${after / by}/${before / by}`;
}

describe('the grammar', () => {
  const separator = fc.constantFrom('/', ' / ', ' + ', ' And ', '/ ');
  const noise = fc.constantFrom('', ' (Purpose Revised)', ' (Book Closure Dates Revised)');

  test('each clause is an event, whatever stands between them', () =>
    forAll(
      [fc.array(clause, { minLength: 1, maxLength: 3 }), separator, noise],
      { numRuns: 2000 },
      (clauses, between, note) => {
        const text = clauses.map((clause) => clause.text).join(between) + note;
        expect(read(text).filter((event) => event !== 'meeting ignored')).toEqual(
          clauses.map(({ event }) => event),
        );
      },
    ));

  test('one character more or less never makes another factor of digits that were not printed', () => {
    const edit = fc.tuple(fc.nat(), fc.constantFrom('', '1', ':', '.', '/', '-', 'x', ' ', ','));
    forAll([clause, edit], { numRuns: 2000 }, ({ text }, [at, put]) => {
      const index = at % text.length;
      const changed = text.slice(0, index) + put + text.slice(index + 1);
      for (const { ratio, kind, status } of readPurpose(changed).events) {
        if (status !== 'applied' || ratio === null) continue;
        const [a, b, ...more] = [...changed.matchAll(/\d+(?:\.\d+)?/g)].map(Number);
        expect(more).toEqual([]);
        expect(ratio.old / ratio.new).toBeCloseTo(
          kind === 'bonus' ? (b as number) / ((a as number) + (b as number)) : (b as number) / (a as number),
          9,
        );
      }
    });
  });

  test('any text is read, quickly and without an error', () =>
    forAll([fc.string({ maxLength: 500 })], (text) => {
      expect(readPurpose(text).events.length).toBeGreaterThan(0);
    }));
});

const LISTS = fileURLToPath(new URL('../../../../shared/data/corporate_actions/', import.meta.url));
const present = existsSync(LISTS);
if (!present)
  process.stdout.write('../shared/data is not here: the purposes of published lists are not classified\n');

test.runIf(present)('every purpose of the published lists has a class; they are printed to be read', () => {
  const classes = new Map<string, Map<string, number>>();
  const overlooked = new Set<string>();
  for (const purpose of publishedPurposes()) {
    const name = readPurpose(purpose)
      .events.map(
        ({ kind, status, ratio, amount }) =>
          `${kind}${ratio === null ? '' : ' ratio'}${amount === null ? '' : ' amount'} ${status}`,
      )
      .join(' + ');
    if (/dividend ignored/.test(name)) overlooked.add(purpose.trim());
    const texts = classes.get(name) ?? new Map<string, number>();
    const text = purpose.trim().replace(/\d+(?:\.\d+)?/g, '#');
    classes.set(name, texts.set(text, (texts.get(text) ?? 0) + 1));
  }
  for (const [name, texts] of [...classes].sort()) {
    const total = [...texts.values()].reduce((sum, count) => sum + count, 0);
    const [common] = [...texts].sort((a, b) => b[1] - a[1]);
    process.stdout.write(`${String(total).padStart(6)}  ${name}   e.g. ${common?.[0]}\n`);
  }
  expect(classes.size).toBeGreaterThan(20);
  // Dividends that are not paid on shares.
  expect([...overlooked].filter((text) => !/PREF|DEB|BOND|NCD|DVR/i.test(text))).toEqual([]);
});

/** Words that real texts put around the amount of a dividend. */
const AROUND = [
  ...['Dividend', 'Final Dividend -', 'Interim Dividend @', 'DIV-', 'AGM/DIV-', 'Dividend 200% i.e.'],
  ...[
    'Per Share',
    'Per Equity Share Of Face Value Rs 10',
    '(20%)',
    'For The Year 2019',
    'Fy 2019-20',
    'Each',
  ],
];

test('a dividend is read or asked about, never overlooked, whatever stands around its amount', () => {
  const text = fc.tuple(
    fc.array(fc.constantFrom(...AROUND), { maxLength: 2 }),
    fc.constantFrom('Rs 7', 'Rs.7/-', '7', 'Rs 7 .5', ''),
    fc.array(fc.constantFrom(...AROUND), { maxLength: 2 }),
  );
  forAll([text], ([before, amount, after]) => {
    const { events } = readPurpose(['Dividend', ...before, amount, ...after].join(' '));
    expect(events.some(({ kind }) => kind === 'dividend')).toBe(true);
    for (const event of events.filter(({ kind }) => kind === 'dividend')) {
      expect([event.status, event.status === 'applied' && event.amount]).toEqual(
        event.status === 'applied' ? ['applied', '7'] : ['needs_review', false],
      );
    }
  });
});

function publishedPurposes(): string[] {
  const files = ['nse', 'bse'].flatMap((folder) =>
    readdirSync(LISTS + folder).map((name) => `${LISTS}${folder}/${name}`),
  );
  return files
    .filter((file) => /(?:CF-CA|\/bc\d|BSE_Corp)/i.test(file))
    .flatMap(
      (file) =>
        parse(readFileSync(file), {
          bom: true,
          columns: (names: string[]) => names.map((name) => name.trim().toUpperCase()),
          relax_column_count: true,
          relax_quotes: true,
        }) as { PURPOSE?: string }[],
    )
    .flatMap(({ PURPOSE }) => (PURPOSE === undefined ? [] : [PURPOSE]));
}

describe('a text that is longer than any purpose', () => {
  const hostile = fc
    .tuple(
      fc.constantFrom('1', '(', 'R S ', ' ', 'Rs 1', '1.1', 'A ', 'Dividend Rs 2/', 'é', '#('),
      fc.integer({ min: 1_001, max: 100_000 }),
    )
    .map(([unit, length]) => unit.repeat(length).slice(0, length));

  test('waits for a person, and no pattern with a repetition is tried on it', () => {
    forAll([hostile], { numRuns: 10 }, (text) => {
      const replace = vi.spyOn(String.prototype, 'replace');
      onTestFinished(() => replace.mockRestore());
      const { events } = readPurpose(text);
      expect(replace).not.toHaveBeenCalled();
      replace.mockRestore();
      expect(events.map(short)).toEqual(['other needs_review']);
      expect(events[0]?.reason).toBe('its text is longer than the 1000 characters that are read');
    });
  });

  test('is still known to be called off or revised', () => {
    expect(readPurpose(`${'x '.repeat(600)}Bonus 1:1 cancelled`)).toMatchObject({ calledOff: true });
    expect(readPurpose(`Bonus 1:1 (Revised)${' '.repeat(1_000)}`)).toMatchObject({ revised: true });
    expect(read(`Bonus 1:1${' '.repeat(900)}`)).toEqual(['bonus 2/1']);
  });
});
