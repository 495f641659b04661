import { scaleLinear } from 'd3-scale';
import { today } from '../../core/clock.ts';
import { addDays, type Day, type DayRange, daysBetween } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { largest } from '../../core/iterables.ts';
import { count, plural } from '../../core/wording.ts';
import type { Context } from '../../jobs/context.ts';
import { knownYears, listDataSets } from '../../jobs/runs/read-coverage.ts';
import { readArrivals, readSessionRecords } from '../../load/state/coverage/completeness.ts';
import { expectedVariants, isQuarterly } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import { COMMANDS } from '../commands.ts';
import { Command, Empty, Years } from '../components/basics.tsx';
import { DataSetLink } from '../components/names.tsx';
import { Heading, type Page, type PageContext, type Requested } from '../page.tsx';
import { MONTHS } from './coverage-page.tsx';

/** What is shown if no year is requested. */
const RECENT_DAYS = 90;

interface Span extends DayRange {
  readonly name: string;
}

/** Data that is loaded later than this is not late: it was loaded for a past range. */
const AWAITED_HOURS = 48;

/** How late the data of a session was loaded. */
interface Arrival {
  readonly day: Day;
  /** Hours after it was due; 0 if it was not late. */
  readonly hours: number;
}

/** How late the sessions of a data set were loaded. */
interface Lateness extends Pair {
  /** Sessions that were loaded within AWAITED_HOURS. */
  readonly arrivals: readonly Arrival[];
  /** Number of sessions that were loaded after that. */
  readonly afterwards: number;
  /** Median and maximum of the hours; null if there are no arrivals. */
  readonly median: number | null;
  readonly worst: number | null;
}

/** The number of records of sessions of a data set. */
interface RowCounts extends Pair {
  readonly sessions: readonly { readonly day: Day; readonly records: number }[];
}

/** How late the data of each data set was, over time. */
export async function freshnessPage(context: PageContext, requested: Requested): Promise<Page> {
  const pairs = withSessions(await listDataSets(context));
  const { span, chooser } = await spanOf(context, requested, pairs, '/freshness');
  const found = await readLateness(context, pairs, span);
  return {
    title: 'Freshness',
    main: (
      <>
        <Heading title="Freshness">
          How many hours after it was due the data of each session was stored, {span.name}. A session is due
          when its schedule requests it.
        </Heading>
        {chooser}
        <ul class="plain charts">
          {found.map((one) => (
            <li key={`${one.operation} ${one.exchange}`} class="card">
              <LatenessChart one={one} span={span} />
            </li>
          ))}
        </ul>
      </>
    ),
  };
}

/** `25 min`, `3.4 h`. */
const hoursText = (hours: number) =>
  hours < 1 ? `${Math.round(hours * 60)} min` : `${Number(hours.toFixed(1))} h`;

function LatenessChart({ one, span }: { readonly one: Lateness; readonly span: Span }) {
  const { arrivals, afterwards, median, worst } = one;
  const summary =
    median === null || worst === null
      ? `no session arrived within ${AWAITED_HOURS} hours`
      : `${plural(arrivals.length, 'session')}: half within ${hoursText(median)}, the latest after ${hoursText(worst)}`;
  const later = afterwards === 0 ? '' : `; ${plural(afterwards, 'session')} loaded afterwards`;
  return (
    <>
      <ChartHead pair={one} text={`${summary}${later}`} />
      {arrivals.length === 0 ? (
        <Empty title="No data arrived around the time it was due.">
          <p>Data of past days is not counted.</p>
        </Empty>
      ) : (
        <TimeChart
          label={`Hours after ${one.operation} ${one.exchange} was due, ${span.name}: ${summary}`}
          from={span.from}
          to={span.to}
          points={arrivals.map(({ day, hours }) => ({ day, value: hours }))}
          kind="dots"
          format={(value) => `${value} h`}
        />
      )}
    </>
  );
}

/** How many records the sessions of each data set had, over time. */
export async function rowsPage(context: PageContext, requested: Requested): Promise<Page> {
  const pairs = withSessions(await listDataSets(context));
  const { span, chooser } = await spanOf(context, requested, pairs, '/rows');
  const found = await readRowCounts(context, pairs, span);
  return {
    title: 'Row counts',
    main: (
      <>
        <Heading title="Row counts">
          Records of each complete session, {span.name}. The dashed line is the median.
        </Heading>
        {chooser}
        <ul class="plain charts">
          {found.map((one) => (
            <li key={`${one.operation} ${one.exchange}`} class="card">
              <RowsChart one={one} span={span} />
            </li>
          ))}
        </ul>
      </>
    ),
  };
}

function RowsChart({ one, span }: { readonly one: RowCounts; readonly span: Span }) {
  const values = one.sessions.map(({ records }) => records).sort((a, b) => a - b);
  const median = values[Math.floor((values.length - 1) / 2)] ?? null;
  const summary =
    median === null
      ? 'no complete session'
      : `${plural(values.length, 'session')}, ${count(values[0] ?? 0)} to ${count(values.at(-1) ?? 0)}, median ${count(median)}`;
  return (
    <>
      <ChartHead pair={one} text={summary} />
      {median === null ? (
        <Empty title="Nothing is loaded for these days.">
          <p>
            <Command>{COMMANDS.gaps}</Command> lists what should be there.
          </p>
        </Empty>
      ) : (
        <TimeChart
          label={`Records of ${one.operation} ${one.exchange}, ${span.name}: ${summary}`}
          from={span.from}
          to={span.to}
          points={one.sessions.map(({ day, records }) => ({ day, value: records }))}
          kind="line"
          format={count}
          usual={median}
        />
      )}
    </>
  );
}

function ChartHead({ pair, text }: { readonly pair: Pair; readonly text: string }) {
  return (
    <>
      <h2>
        <DataSetLink {...pair} />
      </h2>
      <p class="muted">{text}</p>
    </>
  );
}

/** The requested days: a year, or else the last ones; with links to the others. */
async function spanOf(context: PageContext, { query }: Requested, pairs: readonly Pair[], path: string) {
  const years = await knownYears(context, pairs);
  const requested = Number(query.get('year'));
  const year = years.includes(requested) ? requested : null;
  const to = today(context.clock, context.config.EOD_TIMEZONE);
  const span: Span =
    year === null
      ? { from: addDays(to, -RECENT_DAYS), to, name: `the last ${RECENT_DAYS} days` }
      : { from: `${year}-01-01`, to: `${year}-12-31`, name: `in ${year}` };
  const recent = `Last ${RECENT_DAYS} days`;
  const chooser = <Years path={path} years={years} chosen={year} recent={recent} />;
  return { span, chooser };
}

interface Point {
  readonly day: Day;
  readonly value: number;
}

interface ChartProps extends DayRange {
  /** What it shows, in words, for screen readers. */
  readonly label: string;
  readonly points: readonly Point[];
  /** Dots for single events, a line for values that follow each other. */
  readonly kind: 'dots' | 'line';
  /** Formats a value of the axis. */
  readonly format: (value: number) => string;
  /** A value for comparison, drawn as a dashed line. */
  readonly usual?: number | null;
}

const HEIGHT = 120;
const TOP = 16;
const BOTTOM = 100;
/** Percent of the width that is reserved for the numbers of the axis. */
const AXIS = 9;
/** Points further apart than this many days are not connected. */
const JOINED_DAYS = 10;

/** Draws values over days. Horizontal positions are percentages, so that the chart fills the width there is. */
function TimeChart({ label, from, to, points, kind, format, usual = null }: ChartProps) {
  const most = largest(
    points.map(({ value }) => value),
    Math.max(1, usual ?? 0),
  );
  const y = scaleLinear([0, most], [BOTTOM, TOP]).nice(3);
  const x = scaleLinear([0, Math.max(1, daysBetween(from, to))], [AXIS, 99.5]);
  const xOf = (day: Day) => x(daysBetween(from, day));
  const path = (of: readonly Point[]) =>
    `M${of.map(({ day, value }) => `${xOf(day)},${y(value)}`).join('L')}`;
  return (
    <svg class="chart" role="img" aria-label={label} height={HEIGHT}>
      {y
        .ticks(3)
        .filter(Number.isInteger)
        .map((tick) => (
          <g key={tick}>
            <line x1="0" x2="100%" y1={y(tick)} y2={y(tick)} class="grid" />
            <text x="0" y={y(tick) - 3} class="axis">
              {format(tick)}
            </text>
          </g>
        ))}
      {ticksOf(from, to).map((day) => (
        <text key={day} x={`${xOf(day)}%`} y={HEIGHT - 4} class="axis axis-day">
          {day.slice(5) === '01-01' ? day.slice(0, 4) : dayName(day)}
        </text>
      ))}
      {usual === null ? null : <line x1="0" x2="100%" y1={y(usual)} y2={y(usual)} class="usual" />}
      {kind === 'line' ? (
        <svg
          viewBox={`0 0 100 ${HEIGHT}`}
          width="100%"
          height={HEIGHT}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          {connected(points).map((piece) => (
            <path key={piece[0]?.day} d={path(piece) ?? ''} class="series" />
          ))}
        </svg>
      ) : null}
      {kind === 'dots' || points.length < 40
        ? points.map(({ day, value }) => (
            <circle key={day} cx={`${xOf(day).toFixed(2)}%`} cy={y(value).toFixed(1)} r="2.5" class="dot" />
          ))
        : null}
    </svg>
  );
}

const monthName = (day: Day) => MONTHS[Number(day.slice(5, 7)) - 1]?.slice(0, 3);

const dayName = (day: Day) =>
  day.endsWith('-01') ? monthName(day) : `${Number(day.slice(8))} ${monthName(day)}`;

/**
 * The days on the axis: in a long range the first days of months or of every third month, in a shorter one a day every
 * week or two.
 */
function ticksOf(from: Day, to: Day): Day[] {
  const days = daysBetween(from, to);
  if (days < 60) {
    const step = days < 20 ? 5 : 14;
    return Array.from({ length: Math.floor(days / step) + 1 }, (_, at) => addDays(from, at * step)).slice(
      0,
      -1,
    );
  }
  const all = Array.from({ length: days + 1 }, (_, at) => addDays(from, at)).filter((day) =>
    day.endsWith('-01'),
  );
  return days < 150 ? all : all.filter((_, at) => at % 3 === 0);
}

/** Splits points into groups that are close enough to be connected. */
function connected(points: readonly Point[]): Point[][] {
  const found: Point[][] = [];
  for (const point of points) {
    const last = found.at(-1);
    const before = last?.at(-1);
    if (last !== undefined && before !== undefined && daysBetween(before.day, point.day) <= JOINED_DAYS) {
      last.push(point);
    } else {
      found.push([point]);
    }
  }
  return found;
}

/** The data sets with data for each session; for the others there is no time at which data is due. */
function withSessions(pairs: readonly Pair[]): Pair[] {
  return pairs.filter(({ operation }) => {
    const declared = operationNamed(operation);
    return expectedVariants(declared) !== null && !isQuarterly(declared);
  });
}

/** Reads how late the sessions of a range were loaded, for each of these data sets. */
async function readLateness(context: Context, pairs: readonly Pair[], range: DayRange): Promise<Lateness[]> {
  const sessions = await readArrivals(context, pairs, range);
  return pairs.map((pair) => {
    const all = sessions.filter((one) => pairName(one) === pairName(pair));
    const arrivals = all.filter(({ hours }) => hours <= AWAITED_HOURS);
    const sorted = arrivals.map(({ hours }) => hours).sort((a, b) => a - b);
    return {
      ...pair,
      arrivals,
      afterwards: all.length - arrivals.length,
      median: sorted[Math.floor((sorted.length - 1) / 2)] ?? null,
      worst: sorted.at(-1) ?? null,
    };
  });
}

/** Reads the number of records of each complete session in a range, for each of these data sets. */
async function readRowCounts(
  context: Context,
  pairs: readonly Pair[],
  { from, to }: DayRange,
): Promise<RowCounts[]> {
  const scope = { expected: pairs, others: false, areNamed: true, from, to };
  const complete = (await readSessionRecords(context, scope)).filter(({ state }) => state === 'complete');
  return pairs.map((pair) => ({
    ...pair,
    sessions: complete
      .filter((one) => pairName(one) === pairName(pair))
      .map(({ day, records }) => ({ day, records })),
  }));
}
