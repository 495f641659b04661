import { badFile } from '../../diagnostics.ts';
import { defineFormat, type FileRow, type ParsedFile } from '../file-format.ts';

/** The second line, after a title: kind of file, day, quantity, and count of the records that follow. */
const FILE_HEADER = /^10,MTO,(\d{2})(\d{2})(\d{4})(?:,\d*)?(?:,(\d+))?/m;

/** Begins the records of a kind of settlement; old files have several. */
const SETTLEMENT = /^Trade Date\s*<(\d{1,2}-[A-Za-z]{3}-\d{4})>/i;

/** How many fields a record has: type, number, symbol, series, traded and delivered quantity, percent. */
const FIELDS = 7;

/** The names of its columns: the header of the file lacks one. */
const DELIVERY_COLUMNS = [
  'TRADE_DATE',
  'RECORD_TYPE',
  'SR_NO',
  'SYMBOL',
  'SERIES',
  'QUANTITY_TRADED',
  'DELIVERABLE_QUANTITY',
  'PERCENT_DELIVERABLE',
] as const;

/**
 * The records of NSE's delivery positions (type 20), each with the day of its settlement. Other lines are titles.
 *
 * @throws PipelineError `unreadable` if the last line breaks off.
 */
function readDeliveryPositions(text: string): ParsedFile {
  const [, day, month, year, stated] = FILE_HEADER.exec(text) ?? [];
  let tradeDate = `${year}-${month}-${day}`;
  const rows: FileRow[] = [];
  const lines = text.trimEnd().split(/\r?\n/);
  for (const [at, line] of lines.entries()) {
    tradeDate = SETTLEMENT.exec(line)?.[1] ?? tradeDate;
    if (!/^\s*20,/.test(line)) continue;
    const values = line.split(',');
    if (values.length < FIELDS && at === lines.length - 1) throw badFile('breaks off inside its last row');
    const [type, number, symbol, series, traded, delivered, percent] =
      values.length === FIELDS ? values : [values[0], values[1], line];
    rows.push({
      TRADE_DATE: tradeDate,
      RECORD_TYPE: type,
      SR_NO: number,
      SYMBOL: symbol,
      SERIES: series ?? null,
      QUANTITY_TRADED: traded ?? null,
      DELIVERABLE_QUANTITY: delivered ?? null,
      PERCENT_DELIVERABLE: percent ?? null,
    });
  }
  const differs = stated !== undefined && Number(stated) !== rows.length;
  const warnings = differs ? [`its header counts ${Number(stated)} records, but it has ${rows.length}`] : [];
  return { header: DELIVERY_COLUMNS, rows, warnings };
}

/** NSE's delivery positions: their own header lacks a column. */
export default defineFormat({
  name: 'nse-deliveries',
  files: ['MTO_DDMMYYYY.DAT'],
  // Whatever the file is called.
  detect: (start) => FILE_HEADER.test(start.slice(0, 1_000)),
  parse: readDeliveryPositions,
  dataSet: 'Deliveries',
  // The full bhav copy has its deliveries from them.
  rank: 1,
  exchange: 'NSE',
  marks: ['TRADE_DATE', 'DELIVERABLE_QUANTITY', 'PERCENT_DELIVERABLE'],
  needs: ['SYMBOL', 'SERIES', 'QUANTITY_TRADED'],
  columns: {
    SYMBOL: 'symbol',
    SERIES: 'series',
    TRADE_DATE: 'tradDt',
    QUANTITY_TRADED: 'tradedQuantity',
    DELIVERABLE_QUANTITY: 'deliveredQuantity',
    PERCENT_DELIVERABLE: 'deliveredPercent',
  },
});
