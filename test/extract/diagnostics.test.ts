import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/extract/index.ts';

describe('every line that the source is known to send', () => {
  const rows: readonly [string, string, boolean, number?][] = [
    ['Authentication request received. Try request data in next moment.', 'not_ready', true],
    ['Calls per hour are limited.', 'hourly_quota', true],
    ['Bandwidth per hour is limited.', 'hourly_quota', true],
    ['Calls limitation is reached.', 'monthly_quota', false],
    ['Bandwidth limitation is reached.', 'monthly_quota', false],
    ['Access Denied. Key not found.', 'credential', false],
    ['Access Denied. Key blocked.', 'credential', false],
    ['Access Denied. Key unknown or empty.', 'credential', false],
    ['Access Denied. Key Invalid.', 'credential', false],
    ['Key Expired.', 'credential', false],
    ['Function not enabled.', 'operation_blocked', false],
    ['Data for requested exchange is disabled.', 'exchange_blocked', false],
    ['Instrument is not allowed for Demo key.', 'instrument_blocked', false],
    ['Date is out of allowed range.', 'range_refused', false],
    ['Date is out of allowed range of 1 day.', 'range_refused', false, 1],
    ['Date is out of allowed range of 5 days.', 'range_refused', false, 5],
    ['Date is out of allowed range of 30 days.', 'range_refused', false, 30],
    ['From - To is out of allowed range of 10 years.', 'range_refused', false, 3650],
    ['Filters cant be empty.', 'bad_request', false],
  ];

  test.each(rows)('%s', (line, kind, retryable, limitDays) => {
    for (const said of [line, `  ${line}\r\n`, line.toUpperCase(), line.replace(/\.$/, ''), `"${line}"`]) {
      const error = diagnose(said);
      expect(error).toMatchObject({ kind, retryable });
      expect(error?.limitDays).toBe(limitDays);
      expect(error?.diagnostic?.toLowerCase()).toContain(line.toLowerCase().slice(0, -1));
    }
  });
});

test.each([
  '',
  '{}',
  'Key Expired. And more to it',
  'The Function not enabled.',
  '<html>Access Denied. Key not found.</html>',
  `Key Expired.${' '.repeat(10_000)}x`,
])('%j is none of them', (text) => expect(diagnose(text)).toBeNull());
