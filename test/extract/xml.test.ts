import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import { checkResponse } from '../../src/extract/envelope.ts';
import type { Extracted } from '../../src/extract/index.ts';
import { readXml } from '../../src/extract/xml.ts';
import { operationNamed, operations } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { readAs } from './support.ts';

const NAME = 'GetTotalTradeHighlights';
const rows = (read: Extracted) => read.batches.flatMap((batch) => [...batch.rows]);

const RECORD =
  '<TradeHighlights>Total </TradeHighlights><ScripsNo>4471</ScripsNo><TradesNo>2802025</TradesNo><SharesVol>43.87</SharesVol><TurnoverRsCr>4179</TurnoverRsCr><Date>2-27-2025 12:00:00 AM</Date><ReceivedAt>2-27-2025 9:02:02 PM</ReceivedAt><SavedAt>2-27-2025 9:02:02 PM</SavedAt>';
const ONE = `<Highlight>${RECORD}</Highlight>`;

/** Numbers come as text from XML, which the table stores as the same decimals. */
function sameAsJson(): object[] {
  const json = rows(readAs(NAME, operationNamed(NAME).sample.response as object));
  return json.map((row) => ({ ...row, shares_volume_crore: '43.87', turnover_crore: '4179' }));
}

const thrown = (body: string): PipelineError => {
  try {
    readAs(NAME, body);
  } catch (error) {
    if (error instanceof PipelineError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
};

test.each<[string, string]>([
  ['a list', `<ArrayOfHighlight>${ONE}</ArrayOfHighlight>`],
  [
    'with a prolog, a byte order mark, a comment',
    `\ufeff<?xml version="1.0" encoding="utf-8"?>\n<!-- x --><A>\n  ${ONE}\n</A>\n`,
  ],
  ['an envelope', `<Response><Value>${ONE}</Value><Count>1</Count></Response>`],
  [
    'an envelope whose values are the records',
    `<Response><Value>${RECORD}</Value><Count>1</Count></Response>`,
  ],
  ['a single record', `<Highlight>${RECORD}</Highlight>`],
  ['an envelope around an envelope', `<Response><Data><Rows>${ONE}</Rows></Data></Response>`],
  [
    'prefixes and types',
    `<d:A xmlns:d="urn:x" xmlns:m="urn:y">${ONE.replace(/<(\/?)(\w+)>/g, (_, slash, name) => (slash === '/' ? `</d:${name}>` : `<d:${name} m:type="Edm.String">`))}</d:A>`,
  ],
  [
    'attributes',
    `<A><Row ${[...RECORD.matchAll(/<(\w+)>([^<]*)/g)].map(([, name, value]) => `${name}="${value}"`).join(' ')} /></A>`,
  ],
  ['upper case', `<A>${ONE.replace(/<\/?\w+>/g, (tag) => tag.toUpperCase())}</A>`],
  ['CDATA and characters by number', `<A>${ONE.replace('Total ', '<![CDATA[To]]>t&#97;l')}</A>`],
  ['in a JSON string', JSON.stringify(`<A>${ONE}</A>`)],
])('the same row as from JSON: %s', (_, body) => {
  const read = readAs(NAME, body);
  expect(read).toMatchObject({ rejects: [], fetched: 1, unknownFields: [], warnings: [] });
  expect(rows(read)).toEqual(sameAsJson());
});

test('several records, marked and empty values, signs that are written by name', () => {
  const record = (symbol: string, rest: string) =>
    `<Bhav><Symbol>${symbol}</Symbol><SctySrs>EQ</SctySrs><TradDt>2-27-2025 12:00:00 AM</TradDt>${rest}</Bhav>`;
  const xml = `<ArrayOfBhav xmlns:i="http://www.w3.org/2001/XMLSchema-instance">${record('M&amp;M', '<ISIN i:nil="true" /><ClosePrice>12345678901234567890.10</ClosePrice>')}${record('L&amp;T', '<ISIN /><ClosePrice>1e3</ClosePrice>')}${record('A', '<ClosePrice>1</ClosePrice><ClosePrice>2</ClosePrice>')}</ArrayOfBhav>`;
  const read = readAs('GetBhavCopyCM', xml, { from: '2025-02-27', to: '2025-02-27' });
  expect(rows(read)).toMatchObject([
    { symbol: 'M&M', isin: null, close_price: '12345678901234567890.10' },
    { symbol: 'L&T', isin: null, close_price: '1e3' },
  ]);
  expect(read.rejects[0]?.problems).toEqual([{ path: 'ClosePrice', message: 'is a list, not a number' }]);
});

test.each<[string, string]>([
  ['an empty list', '<ArrayOfHighlight xmlns:i="urn:x" />'],
  ['an empty envelope', '<Response><Value /><Count>0</Count></Response>'],
  ['a list that is marked as nil', '<A xmlns:i="urn:x" i:nil="true"/>'],
])('no record: %s', (_, body) => {
  expect(readAs(NAME, body)).toMatchObject({ fetched: 0, rejects: [] });
});

describe('what is no data', () => {
  test.each<[string, string, object]>([
    ['a diagnostic', '<string xmlns="urn:x">Access Denied. Key Invalid.</string>', { kind: 'credential' }],
    [
      'one in an error',
      '<Error><Message>Calls per hour are limited.</Message></Error>',
      { kind: 'hourly_quota' },
    ],
    [
      'one deeper',
      '<Response><Error><Message>Calls per hour are limited.</Message></Error></Response>',
      { kind: 'hourly_quota' },
    ],
    [
      'another error',
      '<Error><Message>An error has occurred.</Message></Error>',
      { kind: 'unknown_diagnostic' },
    ],
    [
      'other text',
      '<string>Something broke.</string>',
      { kind: 'unknown_diagnostic', diagnostic: 'Something broke.' },
    ],
    [
      'a count without records',
      '<Response><Value /><Count>20</Count></Response>',
      { kind: 'unreadable', cutShort: true },
    ],
    [
      'a count of more',
      `<A><Value>${ONE}</Value><Count>2</Count></A>`,
      { kind: 'unreadable', cutShort: true },
    ],
    ['two roots', `<A>${ONE}</A><B/>`, { kind: 'unreadable' }],
    [
      'an element that names an error and holds nothing',
      '<Error/>',
      { kind: 'unreadable', message: 'the response cannot be read: it is an empty element <Error>' },
    ],
    ['a comment without end in sight', `<A><!--${'x'.repeat(300_000)}-->${ONE}</A>`, { kind: 'too_large' }],
    [
      'an element of a thousand attributes',
      `<A ${Array.from({ length: 1_001 }, (_, at) => `a${at}="1"`).join(' ')}>${ONE}</A>`,
      { kind: 'too_large' },
    ],
    ['an attribute of that length', `<A x="${'x'.repeat(300_000)}">${ONE}</A>`, { kind: 'too_large' }],
    ['an entity nobody knows', '<A>&lol;</A>', { kind: 'unreadable' }],
    [
      'a DTD',
      '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
      { message: 'the response cannot be read: it is XML with a DTD, which is not read', cutShort: false },
    ],
    [
      'entities of entities',
      `<!DOCTYPE a [${[...'abcdefghij'].map((name, at) => `<!ENTITY ${name} "${'&a;'.repeat(at * 10)}">`).join('')}]><a>&j;</a>`,
      { message: 'the response cannot be read: it is XML with a DTD, which is not read' },
    ],
    [
      'elements inside each other',
      '<a>'.repeat(100_000),
      { message: 'the response cannot be read: it is XML of more than 20 elements inside each other' },
    ],
    [
      'a page',
      '<html><body>Bad gateway</body></html>',
      { message: 'the response cannot be read: it is an HTML page, not data' },
    ],
  ])('%s', (_, body, error) => {
    expect(thrown(body)).toMatchObject(error);
  });

  test('a response that is cut off anywhere is neither empty nor whole', () => {
    const whole = `<?xml version="1.0"?><A>${ONE}${ONE.replace('Total', 'Other')}</A>`;
    for (let length = 1; length < whole.length; length++) {
      expect(thrown(whole.slice(0, length)).kind).toMatch(/unreadable|unknown_diagnostic/);
    }
  });

  test('a large response is not refused before it is read', () => {
    const context = { operation: operationNamed(NAME), redact: (text: string) => text };
    const large = `<A>${ONE.repeat(1_000)}</A>`;
    expect(() => checkResponse(Buffer.from(large), context)).not.toThrow();
    expect(readAs(NAME, large).fetched).toBe(1_000);
  });
});

test('any text in any field is what was sent, or a reject: nothing crashes', () => {
  const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#13;' };
  const escaped = (text: string) => text.replace(/[&<>\r]/g, (sign) => escapes[sign] as string);
  forAll(
    [
      fc.constantFrom(...operations.map(({ name }) => name)),
      fc.nat(),
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('1.50', '-', '1e400', ' x '),
      ),
    ],
    { numRuns: 300 },
    (name, pick, text) => {
      const { response } = operationNamed(name).sample as { response: { Value?: Record<string, unknown>[] } };
      const [good = {}] = response.Value ?? [response as Record<string, unknown>];
      const keys = Object.keys(good);
      const bad = { ...good, [keys[pick % keys.length] as string]: text };
      const xml = `<A>${[good, bad]
        .map(
          (character) =>
            `<R>${Object.entries(character)
              .map(([key, value]) => `<${key}>${escaped(String(value ?? ''))}</${key}>`)
              .join('')}</R>`,
        )
        .join('')}</A>`;
      expect(readXml(xml)).toMatchObject({ R: [{}, { [keys[pick % keys.length] as string]: text }] });
      expect(readAs(name, xml).fetched).toBe(2);
    },
  );
});

test('any text that looks like XML is values or a typed error', () => {
  const piece = fc.constantFrom(
    ...'<a> </a> <b/> & &#0; &#x110000; &amp; <!-- --> <![CDATA[ ]]> <?p ?> " x= __proto__ constructor <__proto__> </__proto__> x:y \u0000 \ud800'.split(
      ' ',
    ),
  );
  forAll([fc.array(piece, { maxLength: 30 })], { numRuns: 2_000 }, (pieces) => {
    try {
      JSON.stringify(readXml(`<a>${pieces.join('')}</a>`));
    } catch (error) {
      expect(error).toBeInstanceOf(PipelineError);
    }
  });
  expect(Object.prototype).not.toHaveProperty('x');
});
