import { describe, expect, test } from 'vitest';
import { checkResponse, openResponse } from '../../src/extract/envelope.ts';
import { operationNamed } from '../../src/operations/registry.ts';

const context = { operation: operationNamed('GetTotalTradeHighlights'), redact: (text: string) => text };

/** A record of the operation, and one whose fields it does not know. */
const KNOWN = { TradeHighlights: 'Total', ScripsNo: '4471', Date: '02-27-2025' };
const OTHER = { F: 'x' };

const open = (body: string | object) =>
  openResponse(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), context);

describe('the envelope of a list', () => {
  const around = (head: string, tail: string, records = 2) =>
    open(`${head}${Array(records).fill('{"a":[1]}').join()}${tail}`).warnings;

  test.each([
    ['[', ']'],
    ['\ufeff [ ', ' ] \n'],
    ['{"value":[', ']}'],
    ['{"Value": [', '], "a": null, "b": [1], "c": [], "d": "", "e": {"f": [2]}, "g": "é"}'],
    ['{"a": null, "count": 2, "value": [', '], "@odata.count": "2", "@odata.nextLink": ""}'],
    // As for an envelope that is parsed, a message beside records is no error.
    ['{"message":"Key Expired.","value":[', ']}'],
    ['[', `]${' '.repeat(1_999)}`],
  ])('nothing is wrong with %j … %j', (head, tail) => {
    expect(around(head, tail)).toEqual([]);
  });

  test('a count of fewer is a warning', () => {
    expect(around('{"value":[', '],"count":1}')).toEqual(['count says 1, the response holds 2 records']);
    expect(around('{"count":4,"value":[', '],"totalCount":"no"}', 5)).toEqual([
      'count says 4, the response holds 5 records',
      'totalcount says no, the response holds 5 records',
    ]);
  });

  test.each([
    ['{"value":[', '],"count":3}', 'count says 3, the response holds 2 records'],
    [
      '{"count":12345678901234567890,"value":[',
      ']}',
      'count says 12345678901234567890, the response holds 2',
    ],
    ['{"__count":"3","value":[', ']}', '__count says 3, the response holds 2 records'],
    ['{"value":[', '],"@odata.nextLink":"x"}', 'it holds 2 records and says in @odata.nextLink that there'],
  ])('%j … %j lacks records', (head, tail, message) => {
    expect(() => around(head, tail)).toThrow(`the response is incomplete: ${message}`);
  });
});

describe('the records of XML', () => {
  const xml = (element: string, members: object) =>
    `<${element}>${Object.entries(members)
      .map(([name, text]) => `<${name}>${text}</${name}>`)
      .join('')}</${element}>`;
  const known = xml('R', KNOWN);
  const other = xml('R', OTHER);

  test.each<[string, string, unknown[]]>([
    ['blank text', '<A> \n </A>', []],
    ['nil', '<A xmlns:i="urn:x" i:nil="true">x</A>', []],
    ['a record as root', known, [KNOWN]],
    ['an unknown record as root', other, [OTHER]],
    ['a list of one', `<A>${known}</A>`, [KNOWN]],
    ['what repeats is the list, whatever it holds', `<A>${other}${other}</A>`, [OTHER, OTHER]],
    ['texts that repeat', '<A><R>1</R><R>2</R></A>', ['1', '2']],
    ['values beside the list', `<A><X>1</X>${known}<Y /></A>`, [KNOWN]],
    ['nil beside the list', `<A xmlns:i="urn:x"><X i:nil="true" />${known}</A>`, [KNOWN]],
    ['a list in an element of any name', `<A><value><x>${known}${known}</x></value></A>`, [KNOWN, KNOWN]],
    [
      'a record with two elements that have children is no envelope',
      '<A><X><F>x</F></X><Y><G>y</G></Y></A>',
      [{ X: { F: 'x' }, Y: { G: 'y' } }],
    ],
    ['a list in three elements', `<A><B><C>${other}${other}</C></B></A>`, [OTHER, OTHER]],
    ['a list in four', `<A><B><C><D>${other}${other}</D></C></B></A>`, [OTHER, OTHER]],
    ['in more, the fifth is the record', `<A><B><C><D><E>${other}</E></D></C></B></A>`, [{ R: OTHER }]],
  ])('%s', (_, body, records) => {
    expect(open(body).warnings).toEqual([]);
    expect(JSON.parse(JSON.stringify(open(body).records))).toEqual(records);
  });

  test('what is stated beside the list or around it counts', () => {
    for (const body of [
      `<A><Count>0</Count>${known}</A>`,
      `<A><B>${known}</B><Count>0</Count></A>`,
      `<A><B><Count>0</Count>${other}${other}</B></A>`,
    ]) {
      expect(open(body).warnings).toEqual([expect.stringMatching(/^count says 0/)]);
      expect(() => open(body.replace('>0<', '>9<'))).toThrow('count says 9');
    }
  });
});

describe('an HTML page is no data', () => {
  test.each([
    '<!doctype html>',
    '<!DOCTYPE  HTML PUBLIC "x">',
    '<!doctype\nhtml>',
    '\ufeff<html lang="en">',
    '<head>',
    '<title>x',
    '<body>',
    '<div class="x">',
    '<center>',
    '<h1>x',
    '<h3>',
    '<p>x',
    '  <P />',
  ])('%j', (start) => {
    for (const body of [start, start.padEnd(70_000)]) {
      expect(() => checkResponse(Buffer.from(body), context)).toThrow('it is an HTML page, not data');
    }
  });

  test.each(['header', 'parts', 'h', 'bodies', 'htmls', 'titles', 'hr'])('<%s> is XML', (name) => {
    expect(open(`<${name}><R><F>1</F></R><R><F>2</F></R></${name}>`).records).toHaveLength(2);
  });
});

describe('objects', () => {
  test.each<[string, object]>([
    ['only a sign within a key says nothing of OData', { 'a@b': 1 }],
    ['nor do its words', { 'x.odata.y': 1 }],
    ['nothing in the envelope of OData 2', { d: null }],
    ['text in it', { d: '__next' }],
    ['no further records in it', { d: { results: [], __next: null } }],
  ])('that are records: %s', (_, object) => {
    expect(open(object)).toEqual({ records: [object], warnings: [] });
  });

  test.each([null, '', ' ', 0, {}])('a link %j leads nowhere', (link) => {
    for (const name of ['@odata.nextLink', 'odata.nextLink', '__next'])
      expect(open({ [name]: link, value: [KNOWN] })).toEqual({ records: [KNOWN], warnings: [] });
  });

  test.each([
    [{ d: { __NEXT: 'x' } }, 'it says in __NEXT that there are more'],
    [{ value: [KNOWN], __next: 'x' }, 'it holds 1 records and says in __next that there are more'],
    [{ value: [], 'odata.nextLink': ' x ' }, 'it holds 0 records and says in odata.nextLink that there'],
  ])('a link says what is missing: %j', (body, message) => {
    expect(() => open(body)).toThrow(`the response is incomplete: ${message}`);
  });
});
