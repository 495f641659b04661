import type { VNode } from 'preact';
import type { Day, DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { count, plural } from '../../core/wording.ts';
import { countsEachDay, expectedVariants, isQuarterly } from '../../declaration/operation.ts';
import type { Context } from '../../jobs/context.ts';
import { adjustedCloses, largestSymbols } from '../../load/stored-values.ts';
import { dataSetNamed, pairTitle } from '../../operations/registry.ts';
import { readArrivals, readTradingDayRecords } from '../../state/coverage/completeness.ts';
import { Section } from '../components/basics.tsx';
import { TimeChart } from '../components/time-chart.tsx';
import type { Requested } from '../page.tsx';
import { rangeOfYear } from './path-values.ts';

/** Data that is loaded later than this is not late: it was loaded for a past range. */
const AWAITED_HOURS = 48;

/**
 * How many records each trading day of a data set had, and how late they were stored. Null if it has no data for each
 * trading day, because then there is no time at which data is due.
 */
export async function readTrends(context: Context, pair: Pair, range: DayRange): Promise<VNode | null> {
  const dataSet = dataSetNamed(pair.operation);
  if (expectedVariants(dataSet) === null || isQuarterly(dataSet)) return null;
  const scope = { expected: [pair], others: false, ...range };
  const [tradingDays, arrivals] = await Promise.all([
    readTradingDayRecords(context, scope),
    readArrivals(context, [pair], range),
  ]);
  const complete = tradingDays.filter(({ state }) => state === 'complete');
  return (
    <div class="charts">
      {countsEachDay(dataSet) ? rowsChart(pair, complete) : null}
      {latenessChart(pair, arrivals)}
    </div>
  );
}

/** The number of records of each complete trading day of a data set. */
function rowsChart(pair: Pair, tradingDays: readonly { readonly day: Day; readonly records: number }[]) {
  const values = tradingDays.map(({ records }) => records).sort((a, b) => a - b);
  const median = values[Math.floor((values.length - 1) / 2)];
  if (median === undefined) return null;
  const summary = `${plural(values.length, 'trading day')}, ${count(values[0] ?? 0)} to ${count(values.at(-1) ?? 0)}; the dashed line is the median, ${count(median)}`;
  return (
    <Section id="rows" title="Records of each trading day" note={summary}>
      <TimeChart
        label={`Records of ${pairTitle(pair)}: ${summary}`}
        points={tradingDays.map(({ day, records }) => ({ day, value: records }))}
        kind="line"
        format={count}
        usual={median}
      />
    </Section>
  );
}

function latenessChart(pair: Pair, tradingDays: Awaited<ReturnType<typeof readArrivals>>) {
  const arrivals = tradingDays.filter(({ hours }) => hours <= AWAITED_HOURS);
  const sorted = arrivals.map(({ hours }) => hours).sort((a, b) => a - b);
  const [median, longest] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted.at(-1)];
  if (median === undefined || longest === undefined) return null;
  const afterwards = tradingDays.length - arrivals.length;
  const later = afterwards === 0 ? '' : `; ${plural(afterwards, 'trading day')} loaded afterwards`;
  const summary = `${plural(arrivals.length, 'trading day')}: half within ${hoursText(median)}, the latest after ${hoursText(longest)}${later}`;
  return (
    <Section id="late" title="Hours from due to stored" note={summary}>
      <TimeChart
        label={`Hours after ${pairTitle(pair)} was due: ${summary}`}
        points={arrivals.map(({ day, hours }) => ({ day, value: hours }))}
        kind="dots"
        format={(value) => `${value} h`}
      />
    </Section>
  );
}

/** `25 min`, `3.4 h`. */
const hoursText = (hours: number): string =>
  hours < 1 ? `${Math.round(hours * 60)} min` : `${Number(hours.toFixed(1))} h`;

/** The closes of a share as printed and as adjusted, with a form that chooses the share; of the most traded by default. */
export async function readPrices(
  { db }: Context,
  { query }: Requested,
  exchange: string,
  year: number,
): Promise<VNode | null> {
  const range = rangeOfYear(year);
  const wanted = query.get('symbol')?.trim().toUpperCase() ?? '';
  const symbols = await largestSymbols(db.pool, exchange, 8, range.to);
  const symbol = wanted === '' ? symbols[0] : wanted;
  if (symbol === undefined) return null;
  const closes = await adjustedCloses(db.pool, { exchange, symbol, ...range });
  const [first, last] = [closes[0], closes.at(-1)];
  const summary =
    first === undefined || last === undefined
      ? `no trading day of ${year}`
      : `${first.day} to ${last.day}: ${first.adjusted.toFixed(2)} to ${last.adjusted.toFixed(2)} rupees`;
  return (
    <Section id="prices" title={`${symbol}, ${exchange}: closing prices`} note={summary}>
      <form method="get" class="choose">
        <input type="hidden" name="year" value={year} />
        <label>
          Symbol <input name="symbol" size={14} value={symbol} list="symbols" autocomplete="off" />
        </label>
        <datalist id="symbols">
          {symbols.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <button type="submit" class="button">
          Show
        </button>
      </form>
      {closes.length === 0 ? (
        <p>{`No prices of ${symbol} are stored in ${year}.`}</p>
      ) : (
        <>
          <TimeChart
            label={`Closing prices of ${symbol} on ${exchange}, adjusted: ${summary}`}
            points={closes.map(({ day, adjusted }) => ({ day, value: adjusted }))}
            behind={closes.map(({ day, printed }) => ({ day, value: printed }))}
            kind="line"
            format={count}
          />
          <p class="muted">
            Adjusted for splits, consolidations and bonuses (<code>market.prices_adjusted</code>); dashed: as
            printed.
          </p>
        </>
      )}
    </Section>
  );
}
