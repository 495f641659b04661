import type { Behaviour } from './behaviour.ts';

/** A point that the service's documentation leaves open, with the reading that the sandbox does not take by default. */
interface OpenPoint {
  /** The flag of `eod sandbox` for this reading alone; one with a value is among the other flags. */
  readonly flag: string;
  /** What the sandbox does then; in the help and in docs/sandbox.md. */
  readonly description: string;
  /** What is open. */
  readonly open: string;
  readonly behaviour: Partial<Behaviour>;
}

/** Every open point. The help of `eod sandbox`, docs/sandbox.md and `--contrary` are made from it. */
export const OPEN_POINTS: readonly OpenPoint[] = [
  {
    flag: '--trial-day 2025-02-27',
    open: 'Whether the address answers for the days that are asked for.',
    description: 'a trial address, which answers for that day whatever is asked',
    behaviour: { trialDay: '2025-02-27', trialDays: {} },
  },
  {
    flag: '--classification-by-change',
    open: 'What `from` and `to` select of the classification.',
    description: 'a range of days selects only companies whose classification has changed on them',
    behaviour: { classificationByChange: true },
  },
  {
    flag: '--withdrawn-ratios',
    open: 'Whether GetFinRatioEOD and GetFinRatioSnapshot are still there.',
    description: 'GetFinRatioEOD and GetFinRatioSnapshot are no longer offered',
    behaviour: { withdrawnRatios: true },
  },
  {
    flag: '--shapes declared',
    open: 'Whether records have the form of the sample or the declared one.',
    description: 'answer in the declared form',
    behaviour: { shapes: 'declared' },
  },
  {
    flag: '--casing camel',
    open: 'How keys are cased.',
    description: 'keys as declared',
    behaviour: { casing: 'camel' },
  },
  {
    flag: '--envelope wrong-count',
    open: 'What `count` counts; whether ratios come in a list.',
    description: 'a list with a count that is not the number of its records, for ratios too',
    behaviour: { envelope: 'wrong-count' },
  },
  {
    flag: '--content-type json',
    open: 'Which content type JSON has.',
    description: 'JSON as application/json from every operation',
    behaviour: { contentType: 'json' },
  },
  {
    flag: '--action-id-zero',
    open: 'Whether `ActionId` tells corporate actions apart, and what their fields are called.',
    description: 'corporate actions as in the published sample: the id 0, ScripId, ScripName, times',
    behaviour: { actionIdZero: true },
  },
  {
    flag: '--old-series-suffix',
    open: 'Whether the id in a series change has a suffix.',
    description: 'series changes name a security with the suffix of its old series',
    behaviour: { oldSeriesSuffix: true },
  },
  {
    flag: '--src-codes',
    open: 'How `src` is spelled.',
    description: 'bhav copies spell src as XBSE or bse',
    behaviour: { srcCodes: true },
  },
  {
    flag: '--filled-blanks',
    open: 'What fields hold that mean nothing for the cash market.',
    description: 'bhav copies hold "-", "XX", 0 and 0.5 where the cash market has no value',
    behaviour: { filledBlanks: true },
  },
  {
    flag: '--missing-keys',
    open: 'Whether a field without a value has its key.',
    description: 'leave out the keys of blank values',
    behaviour: { missingKeys: true },
  },
  {
    flag: '--spaced-keys',
    open: 'How the stock price of a ratio is spelled.',
    description: 'spell it Stock Price',
    behaviour: { spacedKeys: true },
  },
  {
    flag: '--epoch-milliseconds',
    open: 'Whether Epoch means seconds or milliseconds, and what it has for no date.',
    description: 'in answers with dTFormat=Epoch, times in milliseconds, days in seconds, and 0 for none',
    behaviour: { epochMilliseconds: true },
  },
  {
    flag: '--short-numbers',
    open: 'How many digits a number has in which format.',
    description: 'round numbers in JSON to 15 digits',
    behaviour: { shortNumbers: true },
  },
  {
    flag: '--csv-unquoted',
    open: 'The order of CSV columns, and what is quoted.',
    description: 'CSV with its columns in another order, quotes around dates only, and 10.0 for 10',
    behaviour: { csvUnquoted: true },
  },
  {
    flag: '--xml-attributes',
    open: 'Whether XML has values in elements or attributes, and how it writes dates.',
    description: 'XML with values in attributes and dates as in JSON',
    behaviour: { xmlAttributes: true },
  },
  {
    flag: '--any-case',
    open: 'Whether the case of parameters matters.',
    description: 'match names and values of parameters in any case',
    behaviour: { anyCase: true },
  },
  {
    flag: '--exact-times',
    open: 'Whether the hours of `from` and `to` count.',
    description: 'answer for a day only if from and to include all of it',
    behaviour: { exactTimes: true },
  },
];

/** The other reading of every open point. */
export const CONTRARY: Partial<Behaviour> = OPEN_POINTS.reduce(
  (all, { behaviour }) => Object.assign(all, behaviour),
  {},
);
