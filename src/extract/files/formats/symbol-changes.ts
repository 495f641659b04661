import { defineFormat, type FileRow } from '../file-format.ts';
import { firstLine } from '../first-line.ts';

/** The columns of the list. The first one has another name in lists with a header. */
const HEADER = ['SM_NAME', 'SM_KEY_SYMBOL', 'SM_NEW_SYMBOL', 'SM_APPLICABLE_FROM'] as const;

const isHeader = (line: string) => {
  const names = line.split(',').map((name) => name.trim().toUpperCase());
  return names.slice(1).join() === HEADER.slice(1).join();
};

/**
 * A line of NSE's list of changed symbols: a name, two symbols and a day, quoted or not. With more commas than a name
 * has, it is the header of another file whose last cell happens to be a day.
 */
const SYMBOL_CHANGE =
  /^"?((?:[^,]*,){0,5}[^,]*?)"?,\s*"?([^,\s"]+)"?\s*,\s*"?([^,\s"]+)"?\s*,\s*"?(\d{1,2}[-/ ](?:[A-Za-z]{3,9}|\d{1,2})[-/ ](?:\d{2}){1,2}|\d{4}-\d{2}-\d{2})"?[\s,]*$/;

/** Names may contain unquoted commas, so lines are read from their end. */
function readSymbolChanges(text: string): FileRow[] {
  const [name, before, after, day] = HEADER;
  return text
    .replace(/^\ufeff/, '')
    .split(/\r\n?|\n/)
    .filter((line) => line.trim() !== '' && !isHeader(line))
    .map((line) => {
      const match = SYMBOL_CHANGE.exec(line);
      if (match === null) return { [name]: line, [before]: null, [after]: null, [day]: null };
      return {
        [name]: match[1]?.replaceAll('""', '"'),
        [before]: match[2],
        [after]: match[3],
        [day]: match[4],
      };
    });
}

/** NSE's list of changed symbols, which usually has no header. */
export default defineFormat({
  name: 'symbol-changes',
  files: ['symbolchange.csv'],
  detect: (start) => SYMBOL_CHANGE.test(firstLine(start)) || isHeader(firstLine(start)),
  parse: (text) => ({ header: HEADER, rows: readSymbolChanges(text), warnings: [] }),
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
