import { plural } from '../../core/wording.ts';
import type { RowOf, Scalar } from '../../declaration/table.ts';
import type { bhavcopy } from '../../operations/GetBhavCopyCM.ts';
import { badFile } from '../diagnostics.ts';

/** So many rows with a trade are looked at first: nearly always they show that all is well. */
const FIRST_ROWS = 100;

/** From so many rows on it is certain that a file is wrong; of fewer, each may be an error of its own. */
const FEWEST_ROWS = 3;

/** The share of rows that have to agree: some securities are quoted in percent of a face value. */
const NEARLY_ALL = 0.9;

/** An average price is far outside of lowest and highest price if it differs from them by this factor. */
const FAR = 10;

/** Turnovers in larger units have two decimals. */
const ROUNDED_BY = 0.005;

/** What the turnover seems to be in, by the power of ten by which it is too small. */
const UNITS: Readonly<Record<number, string>> = {
  3: 'thousands of rupees',
  5: 'lakhs of rupees',
  6: 'millions of rupees',
  7: 'crores of rupees',
  [-2]: 'paise',
};

/** The rows of a part of a bhav copy of shares. */
type Prices = readonly RowOf<typeof bhavcopy>[];

/**
 * Makes sure that the turnover of bhav copies of shares is in rupees. Unlike that of derivatives it is quantity times
 * price: turnover divided by quantity is the average price, and lies between the lowest and the highest. Some programs
 * save files of NSE with a turnover in lakhs under the name of the column in rupees.
 *
 * @param parts the rows of each part of a file.
 * @throws PipelineError `unreadable` with the factor, if nearly all rows with a trade, of a trading day or of the whole
 *   file, are far from that; in a file of fewer than three such rows, if one proves it: in that unit, and in no other,
 *   its average price lies between the lowest and the highest.
 */
export function checkTurnover(parts: readonly Prices[]): void {
  if (parts.length > 1) for (const rows of parts) checkRows([rows], false);
  // A history of few securities has few rows of each trading day.
  checkRows(parts, true);
}

function checkRows(parts: readonly Prices[], isFile: boolean): void {
  if (findFactor(parts, FIRST_ROWS, isFile) === null) return;
  const factors = findFactor(parts, Number.POSITIVE_INFINITY, isFile);
  if (factors === null) return;
  const { power, wrong, traded } = factors;
  const factor = `${power > 0 ? '1/' : ''}${new Intl.NumberFormat('en').format(10 ** Math.abs(power))}`;
  const unit = UNITS[power];
  throw badFile(
    `has a turnover that is not in rupees: divided by the quantity it is ${factor} of the prices in ${wrong} of ${plural(traded, 'row')} with a trade${unit === undefined ? '' : `, so it seems to be in ${unit}`}`,
  );
}

/** The power of ten by which the turnover of nearly all rows is too small; null if it is not. */
function findFactor(
  parts: readonly Prices[],
  most: number,
  isFile: boolean,
): { readonly power: number; readonly wrong: number; readonly traded: number } | null {
  let traded = 0;
  const proved = new Set<number>();
  const wrong = new Map<number, number>();
  for (const { traded_quantity, turnover, low_price, high_price } of eachRow(parts)) {
    const [quantity, value, low, high] = [traded_quantity, turnover, low_price, high_price].map(positive);
    // A turnover of zero is one that was rounded.
    if (!quantity || !value || !low || !high) continue;
    traded += 1;
    const average = value / quantity;
    if (average * FAR < low || average > high * FAR) {
      const power = Math.round(Math.log10(Math.sqrt(low * high) / average));
      wrong.set(power, (wrong.get(power) ?? 0) + 1);
      const scalePrice = (rupees: number) => (rupees * 10 ** power) / quantity;
      const isProof = scalePrice(value - ROUNDED_BY) <= high && scalePrice(value + ROUNDED_BY) >= low;
      if (isProof && power > 0 && power in UNITS) proved.add(power);
    }
    if (traded === most) break;
  }
  const [[power, times] = [0, 0]] = [...wrong].sort(([, a], [, b]) => b - a);
  if (times < NEARLY_ALL * traded || (times < FEWEST_ROWS && !(isFile && proved.has(power)))) return null;
  return { power, wrong: times, traded };
}

function* eachRow(parts: readonly Prices[]): Generator<Prices[number]> {
  for (const rows of parts) yield* rows;
}

const positive = (value: Scalar) => {
  const number = Number(value ?? 0);
  return number > 0 ? number : null;
};
