import type { Behaviour } from './behaviour.ts';

/** A point that the service's documentation leaves open, with the reading that the sandbox does not take by default. */
interface OpenPoint {
  /** The flag of `eod sandbox` for this reading alone; one with a value is among the other flags. */
  readonly flag: string;
  /** What the sandbox does then; in the help. */
  readonly description: string;
  /** What is open, what the pipeline does about it whichever it is, and the setting that changes that; in Markdown. */
  readonly open: string;
  readonly handled: string;
  readonly setting?: string;
  readonly behaviour: Partial<Behaviour>;
}

const POINTS: readonly (Omit<OpenPoint, 'behaviour'> & Partial<Pick<OpenPoint, 'behaviour'>>)[] = [
  {
    flag: '--trial-day 2025-02-27',
    open: 'Whether the address answers for the days that are asked for.',
    description: 'a trial address, which answers for that day whatever is asked',
    handled:
      'An answer whose records are all of one other day is refused, with a hint. With the setting, that day is "today", and the day of a record counts.',
    setting: '`EOD_TRIAL_DAY`',
    behaviour: { trialDay: '2025-02-27', trialDays: {} },
  },
  {
    flag: '--classification-by-change',
    open: 'What `from` and `to` select of the classification.',
    description: 'a range of days selects only companies whose classification has changed on them',
    handled: 'Every sector is asked for without dates, besides the range of days.',
  },
  {
    flag: '--withdrawn-ratios',
    open: 'Whether GetFinRatioEOD and GetFinRatioSnapshot are still there.',
    description: 'GetFinRatioEOD and GetFinRatioSnapshot are no longer offered',
    handled: 'If they are refused, GetFinancialRatios is asked the same, for the same rows.',
  },
  {
    flag: '--shapes declared',
    open: 'Whether records have the form of the sample or the declared one.',
    description: 'answer in the declared form',
    handled: 'The fields of a record decide which table it belongs to.',
    behaviour: { shapes: 'declared' },
  },
  {
    flag: '--casing camel',
    open: 'How keys are cased.',
    description: 'keys as declared',
    handled: 'Keys match in any case, also with spaces, `_` and `-` in them.',
    behaviour: { casing: 'camel' },
  },
  {
    flag: '--envelope wrong-count',
    open: 'What `count` counts; whether ratios come in a list.',
    description: 'a list with a count that is not the number of its records, for ratios too',
    handled:
      'A list with fewer records than its count is asked for again; if the same comes again, it is loaded and its days stay incomplete. One with more is loaded, with a warning.',
    setting: '`EOD_COUNT`',
    behaviour: { envelope: 'wrong-count' },
  },
  {
    flag: '--content-type json',
    open: 'Which content type JSON has.',
    description: 'JSON as application/json from every operation',
    handled: 'An answer is read by what it is, not by its content type.',
    behaviour: { contentType: 'json' },
  },
  {
    flag: '--actions-by-announcement',
    open: 'What `from` and `to` select of corporate actions.',
    description: 'a range of days selects corporate actions announced on them, not those with these ex-dates',
    handled: 'A night asks for the lookback and for 30 days ahead; records of any day are stored.',
  },
  {
    flag: '--coded-ratios',
    open: 'What the code in `RatioAmount` means.',
    description: 'ratios of corporate actions as in the published sample: 00050001 for 5:1',
    handled: 'A code is not read: its event is `needs_review`, unless a list has the ratio.',
  },
  {
    flag: '--action-id-zero',
    open: 'Whether `ActionId` tells corporate actions apart, and what their fields are called.',
    description:
      'corporate actions in the other form: the id 0, ScripId, ScripName and times of the published sample, or as declared',
    handled:
      'Both spellings are read. Actions without an id are told apart by purpose, dates and announcement.',
  },
  {
    flag: '--old-series-suffix',
    open: 'Whether the id in a series change has a suffix.',
    description: 'series changes name a security with the suffix of its old series',
    handled: '`symbol` is the id without the suffix; `scrip_id` is kept as sent.',
  },
  {
    flag: '--src-codes',
    open: 'How `src` is spelled.',
    description: 'bhav copies spell src as XBSE or bse',
    handled: 'Only the other exchange, in any spelling, is another exchange. The column keeps the spelling.',
  },
  {
    flag: '--filled-blanks',
    open: 'What fields hold that mean nothing for the cash market.',
    description: 'bhav copies hold "-", "XX", 0 and 0.5 where the cash market has no value',
    handled: 'What cannot be read in such a field is null, with one warning a window.',
  },
  {
    flag: '--missing-keys',
    open: 'Whether a field without a value has its key.',
    description: 'leave out the keys of blank values',
    handled: 'A missing key is a blank value.',
  },
  {
    flag: '--spaced-keys',
    open: 'How the stock price of a ratio is spelled.',
    description: 'spell it Stock Price',
    handled: 'Both are read.',
  },
  {
    flag: '--epoch-milliseconds',
    open: 'Whether Epoch means seconds or milliseconds, and what it has for no date.',
    description: 'in answers with dTFormat=Epoch, times in milliseconds, days in seconds, and 0 for none',
    handled: 'Seconds and milliseconds are told apart by their size, value by value; 0 is no date.',
    setting: '`EOD_DATE_FORMAT` (`String` leaves nothing open)',
  },
  {
    flag: '--short-numbers',
    open: 'How many digits a number has in which format.',
    description: 'round numbers in JSON to 15 digits',
    handled:
      'Numbers are stored and compared as they are printed: another format makes a revision of rows whose digits differ.',
    setting: '`EOD_FORMAT`',
  },
  {
    flag: '--csv-unquoted',
    open: 'The order of CSV columns, and what is quoted.',
    description: 'CSV with its columns in another order, quotes around dates only, and 10.0 for 10',
    handled:
      'Columns are found by their names. A text that was cut at its commas is put together where a space follows them, else its row is a reject.',
    setting: '`EOD_FORMAT` (`Json` leaves nothing open)',
  },
  {
    flag: '--xml-attributes',
    open: 'Whether XML has values in elements or attributes, and how it writes dates.',
    description: 'XML with values in attributes and dates as in JSON',
    handled: 'Both are read.',
    setting: '`EOD_FORMAT`',
  },
  {
    flag: '--any-case',
    open: 'Whether the case of parameters matters.',
    description: 'match names and values of parameters in any case',
    handled: 'Names and values are sent as documented.',
  },
  {
    flag: '--exact-times',
    open: 'Whether the hours of `from` and `to` count, as a release note says.',
    description: 'answer for a day only if from and to include all of it',
    handled: 'A day is always asked for from 00:00:00 to 23:59:59.',
  },
];

/** The name of a flag among parsed options: `--no-gzip` → `gzip`. */
export function optionName(flag: string): string {
  const long = flag.split(' ')[0]?.replace(/^--(no-)?/, '') ?? '';
  return long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Every open point; a flag without a value switches on the behaviour of its name. The help of `eod sandbox`, `--contrary`,
 * and the table of docs/limits.md are made from it.
 */
export const OPEN_POINTS: readonly OpenPoint[] = POINTS.map((point) => ({
  behaviour: { [optionName(point.flag)]: true },
  ...point,
}));

/** The other reading of every open point. */
export const CONTRARY: Partial<Behaviour> = OPEN_POINTS.reduce(
  (all, { behaviour }) => Object.assign(all, behaviour),
  {},
);
