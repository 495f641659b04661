import { defineFormat, type FileRow } from '../file-format.ts';
import { firstLine } from '../first-line.ts';

/** The columns of NSE's list of changed symbols, which usually has no header. */
const SYMBOL_CHANGES_HEADER = ['SM_NAME', 'SM_KEY_SYMBOL', 'SM_NEW_SYMBOL', 'SM_APPLICABLE_FROM'] as const;

/**
 * A line of NSE's list of changed symbols: a name, two symbols and a day, quoted or not. With more commas than a name
 * has, it is the header of another file whose last cell happens to be a day.
 */
const SYMBOL_CHANGE =
  /^"?((?:[^,]*,){0,5}[^,]*?)"?,\s*"?([^,\s"]+)"?\s*,\s*"?([^,\s"]+)"?\s*,\s*"?(\d{1,2}[- ](?:[A-Za-z]{3}|\d{1,2})[- ](?:\d{2}){1,2}|\d{4}-\d{2}-\d{2})"?[\s,]*$/;

/** Names may contain unquoted commas, so lines are read from their end. */
function readSymbolChanges(text: string): FileRow[] {
  const [name, before, after, day] = SYMBOL_CHANGES_HEADER;
  return text
    .replace(/^\ufeff/, '')
    .split(/\r\n?|\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const match = SYMBOL_CHANGE.exec(line);
      if (match === null) return { [name]: line, [before]: null, [after]: null, [day]: null };
      return { [name]: match[1], [before]: match[2], [after]: match[3], [day]: match[4] };
    });
}

/**
 * Quotes names with commas in a list of changed symbols that has a header, if the line ends with two symbols and a day:
 * as the name is the first column, the line is unambiguous. Other texts stay as they are.
 */
function quoteNames(text: string): string {
  const [name, ...others] = firstLine(text.replace(/^\ufeff/, ''))
    .split(',')
    .map((cell) => cell.trim().toUpperCase());
  const [, ...expected] = SYMBOL_CHANGES_HEADER;
  if (name === undefined || others.join() !== expected.join()) return text;
  return text.replace(/^[^"\r\n]*(?=\r?$)/gm, (line) => {
    const match = SYMBOL_CHANGE.exec(line);
    return match?.[1]?.includes(',') === true ? `"${match[1]}"${line.slice(match[1].length)}` : line;
  });
}

/** NSE's list of changed symbols, which usually has no header. */
export default defineFormat({
  name: 'symbol-changes',
  files: ['symbolchange.csv'],
  detect: (start) => SYMBOL_CHANGE.test(firstLine(start)),
  parse: (text) => ({ header: SYMBOL_CHANGES_HEADER, rows: readSymbolChanges(text), warnings: [] }),
  repair: quoteNames,
  dataSet: 'SymbolChanges',
  exchange: 'NSE',
  byTradingDay: false,
  marks: ['SM_KEY_SYMBOL', 'SM_NEW_SYMBOL', 'SM_APPLICABLE_FROM'],
  columns: {
    SM_KEY_SYMBOL: 'oldSymbol',
    SM_NEW_SYMBOL: 'newSymbol',
    SM_APPLICABLE_FROM: 'changedOn',
    // The second name is used in files with a header.
    SM_NAME: 'companyName',
    SYMB_COMPANY_NAME: 'companyName',
  },
});
