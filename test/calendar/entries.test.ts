import { describe, expect, it } from 'vitest';
import { readEntries } from '../../src/calendar/calendar.ts';
import { PipelineError } from '../../src/core/errors.ts';

const HEADER = 'exchange,date,kind,note';

/** The message of the usage error these lines (below a header) cause. */
function complaint(...lines: string[]): string {
  return complaintAbout([HEADER, ...lines].join('\n'));
}

function complaintAbout(text: string): string {
  try {
    readEntries(text, 'mine.csv');
  } catch (error) {
    if (error instanceof PipelineError && error.kind === 'usage') return error.message;
    throw error;
  }
  return '';
}

describe('readEntries', () => {
  it('reads days of every exchange and of one, in any case, with or without a note', () => {
    const text = [
      '\uFEFF# my days',
      'Exchange,Date,Kind,Note',
      '',
      '*,2027-01-26,holiday,Republic Day',
      ' nse , 2027-02-06 , Session , "a drill, no. #2"',
      '# BSE,2027-02-07,session,commented out',
      'BSE,2027-03-15,holiday',
    ].join('\r\n');
    expect(readEntries(text, 'mine.csv')).toEqual([
      { exchange: '*', day: '2027-01-26', kind: 'holiday' },
      { exchange: 'NSE', day: '2027-02-06', kind: 'session' },
      { exchange: 'BSE', day: '2027-03-15', kind: 'holiday' },
    ]);
  });

  it('reads a file without notes', () => {
    expect(readEntries('exchange,date,kind\nBSE,2027-03-15,holiday\n', 'mine.csv')).toEqual([
      { exchange: 'BSE', day: '2027-03-15', kind: 'holiday' },
    ]);
  });

  it('reads a file without days', () => {
    expect(readEntries(`${HEADER}\n`, 'mine.csv')).toEqual([]);
  });

  it.each([
    ['MCX,2027-01-26,holiday,', 'line 2: exchange "MCX" is not BSE, NSE or *'],
    ['NSE,26-01-2027,holiday,', 'line 2: "26-01-2027" is not a date such as 2026-01-26'],
    ['NSE,2027-02-30,holiday,', 'line 2: "2027-02-30" is not a date such as 2026-01-26'],
    ['NSE,2027-01-26,closed,', 'line 2: kind "closed" is not session or holiday'],
    ['NSE,2027-01-26', 'line 2: 2 columns instead of 4 (quote a note that holds a comma)'],
    ['NSE,2027-01-26,holiday,a,b', 'line 2: 5 columns instead of 4 (quote a note that holds a comma)'],
  ])('refuses %s', (line, message) => {
    expect(complaint(line)).toBe(`calendar file mine.csv, ${message}`);
  });

  it('does not take a # inside a note for a comment', () => {
    expect(complaint('NSE,2027-01-26,holiday,no. #2')).toBe('');
    expect(complaint('NSE,2027-01-26,holiday,no. #2, really')).toContain('5 columns instead of 4');
    expect(complaint('NSE,#2027-01-26,holiday,')).toContain('"#2027-01-26" is not a date');
  });

  it('reads a file that begins with a byte order mark', () => {
    expect(readEntries(`\uFEFF${HEADER}\nBSE,2027-03-15,holiday,\n`, 'mine.csv')).toHaveLength(1);
  });

  it('names every wrong line at once, comments and empty lines counted', () => {
    expect(complaint('# one', '', 'NSE,x,holiday,', 'NSE,2027-01-26,holiday,', 'NSE,2027-01-27,no,')).toBe(
      'calendar file mine.csv, line 4: "x" is not a date such as 2026-01-26; line 6: kind "no" is not session or holiday',
    );
  });

  it('refuses a day that is listed twice, but not a day listed for all and for one', () => {
    expect(complaint('NSE,2027-01-26,holiday,', 'NSE,2027-01-26,session,')).toBe(
      'calendar file mine.csv, line 3: NSE 2027-01-26 is already listed on line 2',
    );
    expect(complaint('*,2027-01-26,holiday,', 'NSE,2027-01-26,session,')).toBe('');
  });

  it('refuses a file without the header, an empty file and broken quotes', () => {
    expect(complaintAbout('# hello\nNSE,2027-01-26,holiday,')).toBe(
      `calendar file mine.csv, line 2: the header must be "${HEADER}"`,
    );
    expect(complaintAbout('')).toBe(`calendar file mine.csv, line 1: the header must be "${HEADER}"`);
    expect(complaint('NSE,2027-01-26,holiday,"open')).toMatch(
      /^calendar file mine\.csv is not valid CSV: .*line 2/,
    );
  });
});
