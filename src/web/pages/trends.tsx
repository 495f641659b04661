import { today } from '../../core/clock.ts';
import { addDays, type DayRange } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import { count, plural } from '../../core/wording.ts';
import {
  AWAITED_HOURS,
  type Lateness,
  type RowCounts,
  readLateness,
  readRowCounts,
  withSessions,
} from '../../jobs/runs/read-arrivals.ts';
import { knownYears, listDataSets } from '../../jobs/runs/read-coverage.ts';
import { COMMANDS } from '../commands.ts';
import { Command, Empty, Years } from '../components/basics.tsx';
import { TimeChart } from '../components/chart.tsx';
import { DataSetLink } from '../components/names.tsx';
import { type Asked, Heading, type Page, type PageContext } from '../page.tsx';

/** What is shown if no year is requested. */
const RECENT_DAYS = 90;

interface Span extends DayRange {
  readonly name: string;
}

/** How late the data of each data set was, over time. */
export async function freshnessPage(context: PageContext, asked: Asked): Promise<Page> {
  const pairs = withSessions(await listDataSets(context));
  const { span, chooser } = await spanOf(context, asked, pairs, '/freshness');
  const found = await readLateness(context, pairs, span);
  return {
    title: 'Freshness',
    main: (
      <>
        <Heading title="Freshness">
          How many hours after it was due the data of each session was stored, {span.name}. A session is due
          when its schedule asks for it.
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
export async function rowsPage(context: PageContext, asked: Asked): Promise<Page> {
  const pairs = withSessions(await listDataSets(context));
  const { span, chooser } = await spanOf(context, asked, pairs, '/rows');
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
async function spanOf(context: PageContext, { query }: Asked, pairs: readonly Pair[], path: string) {
  const years = await knownYears(context, pairs);
  const asked = Number(query.get('year'));
  const year = years.includes(asked) ? asked : null;
  const to = today(context.clock, context.config.EOD_TIMEZONE);
  const span: Span =
    year === null
      ? { from: addDays(to, -RECENT_DAYS), to, name: `the last ${RECENT_DAYS} days` }
      : { from: `${year}-01-01`, to: `${year}-12-31`, name: `in ${year}` };
  const recent = `Last ${RECENT_DAYS} days`;
  const chooser = <Years path={path} years={years} chosen={year} recent={recent} />;
  return { span, chooser };
}
