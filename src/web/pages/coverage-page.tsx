import { today } from '../../core/clock.ts';
import { weekday } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { completeText, plural } from '../../core/wording.ts';
import { BHAV_COPY } from '../../declaration/operation.ts';
import type { QueueContext } from '../../jobs/context.ts';
import {
  type CoverageDay,
  type DataSetDays,
  knownYears,
  listDataSets,
  readDays,
} from '../../jobs/runs/read-coverage.ts';
import { pairTitle } from '../../operations/registry.ts';
import { readRequestedNames } from '../../state/coverage/completeness.ts';
import { readFreshness } from '../../state/coverage/freshness.ts';
import { GAP_REASONS } from '../../state/coverage/gap-reasons.ts';
import { COMMANDS } from '../commands.ts';
import { Command, Section, Years } from '../components/basics.tsx';
import { dayText, Legend, totalsText } from '../components/day-kinds.tsx';
import { MarkIcon } from '../components/marks.tsx';
import { byTitle, DataSet, monthName } from '../components/names.tsx';
import { YearStrip } from '../components/year-strip.tsx';
import { coveragePath, FirstSteps, Heading, type Page, type Requested } from '../page.tsx';
import { chooseYear, rangeOfYear, readPair } from './path-values.ts';
import { readPrices, readTrends } from './trends.tsx';

const WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

/** A year of every data set at a glance. */
export async function coveragePage(context: QueueContext, requested: Requested): Promise<Page> {
  const pairs = byTitle(await listDataSets(context));
  const known = await knownYears(context, pairs);
  const year = chooseYear(requested, known);
  const [sets, freshness] = await Promise.all([
    readDays(context, pairs, rangeOfYear(year)),
    readFreshness(context),
  ]);
  const isKnown = ({ kind }: CoverageDay) => !['nothing', 'holiday', 'pending'].includes(kind);
  if (known.latest === null && !sets.some(({ days }) => days.some(isKnown)))
    return { title: 'Coverage', main: noCoverage() };
  const completeTo = (pair: Pair) => {
    const state = freshness.find((candidate) => pairName(candidate) === pairName(pair));
    const text = completeText(state ?? { completeTo: null, lastComplete: null });
    return state?.completeTo == null ? text : `complete to ${text}`;
  };
  return {
    title: `Coverage ${year}`,
    main: (
      <>
        <Heading title={`Coverage ${year}`}>
          Which trading days of each data set are loaded. Choose a data set to see its days.
        </Heading>
        <Years path="/coverage" years={known.years} chosen={year} />
        <Legend strip />
        <ul class="plain strips">
          {sets.map((set) => (
            <li key={pairName(set)} class="card">
              <h2>
                <a href={`${coveragePath(set)}?year=${year}`}>
                  <DataSet {...set} />
                </a>
              </h2>
              <p class="muted">
                {totalsText(set.days)}; {completeTo(set)}
              </p>
              <YearStrip days={set.days} label={`${pairTitle(set)} in ${year}: ${totalsText(set.days)}`} />
            </li>
          ))}
        </ul>
      </>
    ),
  };
}

const noCoverage = () => (
  <>
    <Heading title="Coverage">Nothing is loaded yet.</Heading>
    <FirstSteps />
  </>
);

/** The calendar of one data set, a year at a time, with charts of its records and, where it has them, its prices. */
export async function dataSetPage(context: QueueContext, requested: Requested): Promise<Page> {
  const pair = readPair(requested);
  const known = await knownYears(context, [pair]);
  const year = chooseYear(requested, known);
  const [[set], prices, trends, requestedNames] = await Promise.all([
    readDays(context, [pair], rangeOfYear(year)),
    pair.operation === BHAV_COPY ? readPrices(context, requested, pair.exchange, year) : null,
    readTrends(context, pair, rangeOfYear(year)),
    readRequestedNames(context.db.drizzle),
  ]);
  const now = today(context.clock, context.config.EOD_TIMEZONE);
  const days = set?.days ?? [];
  // Future months are left out.
  const shown = days.filter(({ day }) => day.slice(0, 7) <= now.slice(0, 7));
  return {
    title: `${pairTitle(pair)} ${year}`,
    main: (
      <>
        <Heading title={pairTitle(pair)}>
          {year}: {totalsText(days)}. <Command>{`${COMMANDS.operations} ${pair.operation}`}</Command>{' '}
          describes its columns.
        </Heading>
        <Years path={coveragePath(pair)} years={known.years} chosen={year} />
        <Legend />
        <section class="card" aria-label={`Days of ${year}`}>
          <div class="months">
            {[...groupBy(shown, ({ day }) => day.slice(0, 7))].map(([month, ofMonth]) =>
              monthTable(month, ofMonth, pair),
            )}
          </div>
        </section>
        {set === undefined ? null : missingTradingDays(set, requestedNames.has(set.operation), context)}
        {prices}
        {trends}
      </>
    ),
  };
}

/** The missing trading days by reason, and what to do about them. */
function missingTradingDays(set: DataSetDays, isRequested: boolean, { config }: QueueContext) {
  const mayRequest = config.EOD_ACCESS_KEY !== undefined && isRequested;
  const missing = set.days.flatMap(({ day, kind, reason, detail }) =>
    kind === 'missing' && reason !== null ? [{ day, reason, detail }] : [],
  );
  if (missing.length === 0) return null;
  return (
    <Section id="missing" title="Missing, by reason">
      <ul class="plain">
        {[...groupBy(missing, ({ reason }) => reason)].map(([reason, days]) => (
          <li key={reason}>
            <strong>{GAP_REASONS[reason]}</strong>: {plural(days.length, 'trading day')}, the newest{' '}
            <a href={coveragePath(set, days.at(-1)?.day)}>{days.at(-1)?.day}</a>
            {days.at(-1)?.detail == null ? null : ` (${days.at(-1)?.detail})`}
          </li>
        ))}
      </ul>
      {mayRequest && missing.some(({ reason }) => reason !== 'beyond_history') ? (
        <p>
          <Command>{`${COMMANDS.fillGaps} ${set.operation}`}</Command> requests what the source still has.
        </p>
      ) : (
        <p>
          <Command>{COMMANDS.import}</Command> loads files of the exchanges.
        </p>
      )}
    </Section>
  );
}

/** `February 2025`, of a day or month. */
const monthText = (day: string) => `${monthName(day, 'long')} ${day.slice(0, 4)}`;

/** A month of a data set. Each day that is known is a link. */
function monthTable(month: string, days: readonly CoverageDay[], pair: Pair) {
  const lead = (weekday(`${month}-01`) + 6) % 7;
  const cells: (CoverageDay | null)[] = [...Array.from({ length: lead }, () => null), ...days];
  while (cells.length % 7 !== 0) cells.push(null);
  const weeks = Array.from({ length: cells.length / 7 }, (_, at) => cells.slice(at * 7, at * 7 + 7));
  return (
    <table key={month} class="month">
      <caption>{monthText(month)}</caption>
      <thead>
        <tr>
          {WEEKDAYS.map((day) => (
            <th key={day} scope="col">
              <abbr title={day}>{day.slice(0, 1)}</abbr>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeks.map((week, at) => (
          <tr key={at}>
            {week.map((day, position) => (
              <td key={position}>{day === null ? null : dayCell(day, pair)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function dayCell(day: CoverageDay, pair: Pair) {
  const number = Number(day.day.slice(8));
  if (day.kind === 'nothing') return <span class="day">{number}</span>;
  const text = dayText(day);
  return (
    <a class={`day day-${day.kind}`} href={coveragePath(pair, day.day)} title={text}>
      {number}
      <span class="hidden">{` ${monthText(day.day)}${text.slice(day.day.length)}`}</span>
      {day.kind === 'complete' ? null : <MarkIcon mark={day.kind} />}
    </a>
  );
}
