/** What no name contains as a word or ends with. */
export const AVOIDED: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/(^|_)(pct|percentage|perc)(_|$)|_per$|^percent_|_percent_(?!change$)/, '_percent at the end'],
  [/(^|_)(crores|lakhs|lacs?|cr|mn|rs)(_|$)|(^|_)(crore|lakh|ms)_/, 'the unit at the end, in the singular'],
  [/(^|_)(qty|num|no_of|vol|px|prev)(_|$)/, 'the whole word'],
  [/(^|_)(ticker|scripcode|scripid|security_code|security_id|bse_code|nse_symbol)$/, 'symbol or scrip_code'],
];

const SNAKE_CASE = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;

export const isSnakeCase = (name: string): boolean => SNAKE_CASE.test(name);

/** Words of the source, and what a name has instead; the units go to the end. */
const WORDS: Readonly<Record<string, string>> = {
  qty: 'quantity',
  num: 'number',
  vol: 'volume',
  px: 'price',
  prev: 'previous',
  ltp: 'last_price',
  ticker: 'symbol',
  scripcode: 'scrip_code',
  scripid: 'scrip_id',
  pct: 'percent',
  perc: 'percent',
  percentage: 'percent',
  crores: 'crore',
  cr: 'crore',
  lakhs: 'lakh',
  lac: 'lakh',
  lacs: 'lakh',
  mn: 'million',
  rs: '',
};
const LAST_WORDS = ['percent', 'crore', 'lakh', 'million', 'thousand', 'ms'];

/** Whole names, or how a name ends, and what it is called instead. */
const RENAMED: readonly (readonly [RegExp, string])[] = [
  [/(^|_)(security_code|bse_code)$/, '$1scrip_code'],
  [/(^|_)security_id$/, '$1scrip_id'],
  [/(^|_)nse_symbol$/, '$1symbol'],
  [/(^|_)per$/, '$1percent'],
  [/^(quantity|volume|shares)$/, 'traded_quantity'],
  [/^trades$/, 'trade_count'],
  [/(^|_)(open|high|low|close)$|^last$/, '$&_price'],
];

/** Postgres cuts a name of more than 63 bytes. */
const LONGEST_NAME = 55;

/** Words of SQL that queries would have to quote. */
const SQL_WORDS: readonly string[] =
  'all and any as asc between case check column desc distinct do else end for from group having in into limit not null offset on only or order primary select some table then to union unique user using when where window with'.split(
    ' ',
  );

/** A name by the rules for a field of the source: `PrevClose` is `previous_close_price`. */
export function columnNameFor(source: string, isBoolean = false): string {
  const words = source
    .replace(/_x([0-9a-f]{4})_/gi, ' ')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .replace(/%/g, ' percent ')
    .split(/[^a-z\d]+/)
    .join(' ')
    .replace(/\bno of ([a-z]+?)s?\b/g, '$1 count')
    .split(' ')
    .flatMap((word) => (Object.hasOwn(WORDS, word) ? (WORDS[word] as string).split('_') : [word]))
    .filter((word) => word !== '');
  const isChange = words.at(-1) === 'change' && words.at(-2) === 'percent';
  const units = isChange ? [] : [...new Set(words.filter((word) => LAST_WORDS.includes(word)))];
  const others = words.filter((word) => !units.includes(word));
  // A name begins with a letter: 52WeekHigh is week_52_high_price.
  const [first = '', second, ...rest] = others;
  const ordered = /^\d/.test(first) ? [second ?? 'value', first, ...rest].filter((w) => w !== '') : others;
  const begun = /^\d/.test(ordered[0] ?? '') ? ['value', ...ordered] : ordered;
  const name = RENAMED.reduce((text, [pattern, by]) => text.replace(pattern, by), begun.join('_'));
  const whole = [name, ...units.slice(0, 1)].filter((part) => part !== '').join('_') || 'value';
  const cut = whole.slice(0, LONGEST_NAME).replace(/_+$/, '');
  if (isBoolean) return /^(is|has)_./.test(cut) ? cut : `is_${cut}`;
  const plain = cut.replace(/^(is|has)_/, '') || 'value';
  return SQL_WORDS.includes(plain) ? `${plain}_value` : plain;
}
