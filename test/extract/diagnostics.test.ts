import { describe, expect, test } from 'vitest';
import {
  badFile,
  diagnose,
  incomplete,
  tooLarge,
  unknownDiagnostic,
  unreadable,
} from '../../src/extract/diagnostics.ts';

describe('every line that the source is known to send', () => {
  const key = 'the access key was refused';
  const hourly = 'the hourly quota is used up';
  const monthly = 'the monthly quota is used up';
  const range = 'the source refused the range';
  const rows: readonly [string, string, string, number?][] = [
    [
      'Authentication request received. Try request data in next moment.',
      'not_ready',
      'the source is not ready yet',
    ],
    ['Calls per hour are limited.', 'hourly_quota', hourly],
    ['Bandwidth per hour is limited.', 'hourly_quota', hourly],
    ['Calls limitation is reached.', 'monthly_quota', monthly],
    ['Bandwidth limitation is reached.', 'monthly_quota', monthly],
    ['Access Denied. Key not found.', 'credential', key],
    ['Access Denied. Key blocked.', 'credential', key],
    ['Access Denied. Key unknown or empty.', 'credential', key],
    ['Access Denied. Key Invalid.', 'credential', key],
    ['Key Expired.', 'credential', key],
    ['Function not enabled.', 'operation_blocked', 'the key may not use this operation'],
    ['Data for requested exchange is disabled.', 'exchange_blocked', 'the key may not use this exchange'],
    ['Instrument is not allowed for Demo key.', 'instrument_blocked', 'the key may not use this instrument'],
    ['Date is out of allowed range.', 'range_refused', range],
    ['Date is out of allowed range of 1 day.', 'range_refused', range, 1],
    ['Date is out of allowed range of 5 days.', 'range_refused', range, 5],
    ['Date is out of allowed range of 30 days.', 'range_refused', range, 30],
    ['From - To is out of allowed range of 1 year.', 'range_refused', range, 365],
    ['From - To is out of allowed range of 10 years.', 'range_refused', range, 3650],
    ['Filters cant be empty.', 'bad_request', 'the request carried no filter'],
    ["Filters can't be empty.", 'bad_request', 'the request carried no filter'],
    ['Data unavailable.', 'no_data', 'the source has no data'],
    [
      "Data unavailable. Send request after market close to get same day's data.",
      'no_data',
      'the source has no data yet',
    ],
    ['IP address not allowed.', 'credential', 'the access key may not be used from this address'],
    ['Duplicated Request Not Allowed.', 'not_ready', 'the source is still responding to the same request'],
    ['Reached instrument limitation.', 'instrument_blocked', 'the key may not request more instruments'],
    [
      'Access Denied. Key already in use by other session.',
      'not_ready',
      'another session is using the access key',
    ],
    ['Selected periodicity or period disabled.', 'instrument_blocked', 'the key may not use this period'],
    [
      'More than 1 match found. Use exact long format identifier instead.',
      'bad_request',
      'several instruments have this name',
    ],
    [
      'RealtimeSubscription disabled for delayed data.',
      'instrument_blocked',
      'the key may not use real-time data',
    ],
    ['Welcome!', 'not_ready', 'the source is not ready yet'],
  ];

  test.each(rows)('%s', (line, kind, meaning, limitDays) => {
    const loose = line.replaceAll(' ', ' \r\n ');
    for (const sent of [
      line,
      `  ${line}\r\n`,
      line.toUpperCase(),
      line.replace(/\.$/, ''),
      `"${line}"`,
      loose,
    ]) {
      const error = diagnose(sent);
      expect(error).toMatchObject({ kind });
      expect(error?.limitDays).toBe(limitDays);
      const shown = sent.replace(/"/g, '').replace(/\s+/g, ' ').trim();
      expect(error?.diagnostic).toBe(shown);
      expect(error?.message).toBe(`${meaning}: ${shown}`);
    }
  });
});

test.each([
  ['Authentication request received. Try request data in next moments.', 'not_ready'],
  ['Authentication request received - try again later', 'not_ready'],
  ['Try to request the data in a next moment!', 'not_ready'],
  ['Calls per hour is limited', 'hourly_quota'],
  ['Sorry. Your calls per hour are limited now: try again in the next hour.', 'hourly_quota'],
  ['Call limitation reached', 'monthly_quota'],
  ['ACCESS DENIED: KEY NOT FOUND!', 'credential'],
  ['Your key has expired.', 'credential'],
  ['"Key Expired.', 'credential'],
  ['The function is not enabled for this key.', 'operation_blocked'],
  ['Data for the requested exchange is disabled', 'exchange_blocked'],
  ['Instruments are not allowed for demo keys.', 'instrument_blocked'],
  ['Dates are out of the allowed range of 30 days', 'range_refused', 30],
  ['FROM-TO is out of allowed range!', 'range_refused'],
  ['Filter cannot be empty', 'bad_request'],
] as const)('a line that is put a little otherwise: %s', (text, kind, limitDays?: number) => {
  const error = diagnose(text);
  expect(error).toMatchObject({ kind, diagnostic: expect.any(String) });
  expect(error?.limitDays).toBe(limitDays);
});

test.each('a an the your is are was were be been has have now please'.split(' '))(
  'the word "%s" does not matter',
  (word) => expect(diagnose(`Key ${word} expired.`)).toMatchObject({ kind: 'credential' }),
);

test.each(['not', 'no', 'never', 'without', 'until', 'if'])('"%s" within a line negates it', (word) => {
  expect(diagnose(`Access denied ${word} key.`)).toBeNull();
  expect(diagnose(`Access denied ${word} a known key.`)).toBeNull();
});

test('quotation marks around the whole line are taken off, with white space on both sides of them', () => {
  const calls = 'Calls per hour are limited.';
  expect(diagnose(` \r\n"  ${calls} \r\n" \n`)?.diagnostic).toBe(calls);
  for (const quoting of [`Sorry: "${calls}"`, `"${calls}" Sorry`, `"${calls}`, `${calls}"`]) {
    expect(diagnose(quoting)?.diagnostic).toBe(quoting);
  }
});

test('only a refused range states a range', () => {
  const error = diagnose('Calls per hour are limited to a range of 5 days.');
  expect(error?.kind).toBe('hourly_quota');
  expect(error?.limitDays).toBeUndefined();
});

test.each([
  '',
  '"',
  '""',
  '{}',
  'Key Expired. And more to it',
  'Access denied.',
  'The key has not expired.',
  'The function was enabled and not disabled.',
  'Data is out of range.',
  'Authentication failed.',
  'Maintenance until further notice; calls per hour are limited.',
  'Key as expired.',
  'Key,Expired',
  '<html>Access Denied. Key not found.</html>',
  `Key Expired.${' '.repeat(10_000)}x`,
])('%j is none of them', (text) => expect(diagnose(text)).toBeNull());

test('a text of more than 800 characters is no line', () => {
  const line = (length: number) =>
    'Date is out of allowed range of 1 day.'.replace('of 1', `of${' '.repeat(length - 37)}1`);
  const spaced = (length: number) => `Key Expired.${' '.repeat(length - 12)}`;
  expect(line(300)).toHaveLength(300);
  expect(diagnose(line(300))).not.toBeNull();
  expect(diagnose(spaced(800))).not.toBeNull();
  expect(diagnose(spaced(801))).toBeNull();
  expect(diagnose(`Access Denied. Key ${'x'.repeat(231)}`)).not.toBeNull();
  expect(diagnose(`Access Denied. Key ${'x'.repeat(232)}`)).toBeNull();
  expect(diagnose(`Access Denied. Key${' x'.repeat(13)}`)).toBeNull();
});

test('the key is taken out of what is kept', () => {
  const redact = (text: string) => text.replaceAll('K3Y', '[redacted]');
  expect(diagnose('Access Denied. Key K3Y blocked.', redact)).toMatchObject({
    diagnostic: 'Access Denied. Key [redacted] blocked.',
  });
  expect(unknownDiagnostic('What is K3Y?', redact)).toMatchObject({ diagnostic: 'What is [redacted]?' });
});

describe('other responses that are no data', () => {
  const keep = (text: string) => text;

  test('an unknown text is kept up to 500 characters, without what Postgres cannot store', () => {
    const error = unknownDiagnostic('  Something\u0000 broke. \n', keep);
    expect(error).toMatchObject({
      kind: 'unknown_diagnostic',
      diagnostic: 'Something\\u0000 broke.',
      message: 'the source responded with text that is not data: Something\\u0000 broke.',
    });
    expect(unknownDiagnostic('z'.repeat(501), keep).diagnostic).toBe('z'.repeat(500));
    // White space before the text does not use up the 500 characters, and a key on the edge is not cut in two.
    expect(unknownDiagnostic(`${' '.repeat(60_000)}text`, keep).diagnostic).toBe('text');
    expect(unknownDiagnostic(`${' '.repeat(64_000)}text`, keep).diagnostic).toBe('');
    const redact = (text: string) => text.replaceAll('K3Y', '*');
    expect(unknownDiagnostic(`${'z'.repeat(499)}K3Y`, redact).diagnostic).toBe(`${'z'.repeat(499)}*`);
  });

  test('what cannot be read, what is too large, and files', () => {
    expect(unreadable('it is empty')).toMatchObject({
      kind: 'unreadable',
      cutShort: false,
      message: 'the response cannot be read: it is empty',
    });
    expect(unreadable('half', { cutShort: true })).toMatchObject({ cutShort: true });
    expect(incomplete('5 of 6 records came')).toMatchObject({
      kind: 'unreadable',
      cutShort: true,
      message: 'the response is incomplete: 5 of 6 records came',
    });
    expect(tooLarge('9 bytes')).toMatchObject({
      kind: 'too_large',
      message: 'the response is too large: 9 bytes',
    });
    const cause = new Error('cause');
    expect(badFile('holds \u0000\ud800 bytes', { cause })).toMatchObject({
      kind: 'unreadable',
      message: 'holds   bytes',
      cause,
    });
    expect(badFile('is empty').cause).toBeUndefined();
  });
});
