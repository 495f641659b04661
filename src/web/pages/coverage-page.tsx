import { today } from '../../core/clock.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { plural } from '../../core/wording.ts';
import { type DataSetDays, knownYears, listDataSets, readDays } from '../../jobs/runs/read-coverage.ts';
import { readFreshness } from '../../load/state/coverage/freshness.ts';
import { GAP_REASONS } from '../../load/state/coverage/gap-reasons.ts';
import { COMMANDS } from '../commands.ts';
import { ActionButton } from '../components/action-forms.tsx';
import { Command, Empty, Section, Years } from '../components/basics.tsx';
import { DataSet } from '../components/names.tsx';
import { Legend, totalsText, YearCalendar, YearStrip } from '../components/session-calendar.tsx';
import { type Asked, coveragePath, Heading, type Page, type PageContext } from '../page.tsx';
import { pairOf, yearOf } from './asked.ts';

const rangeOf = (year: number) => ({ from: `${year}-01-01`, to: `${year}-12-31` });

/** A year of every data set at a glance. */
export async function coveragePage(context: PageContext, asked: Asked): Promise<Page> {
  const pairs = await listDataSets(context);
  const years = await knownYears(context, pairs);
  const year = yearOf(asked, years);
  const [sets, freshness] = await Promise.all([
    readDays(context, pairs, rangeOf(year)),
    readFreshness(context),
  ]);
  const isEmpty = sets.every(({ days }) => days.every(({ kind }) => kind !== 'complete' && kind !== 'empty'));
  const completeTo = (pair: Pair) => {
    const known = freshness.find((one) => pairName(one) === pairName(pair));
    const to = known?.completeTo ?? 'nothing';
    return known?.lastComplete == null || to === known.lastComplete
      ? to
      : `${to}, latest ${known.lastComplete}`;
  };
  return {
    title: `Coverage ${year}`,
    main: (
      <>
        <Heading title={`Coverage ${year}`}>
          Which sessions of each data set are loaded. Choose a data set to see its days.
        </Heading>
        <Years path="/coverage" years={years} chosen={year} />
        <Legend strip />
        {isEmpty ? (
          <Empty title={`Nothing of ${year} is loaded.`}>
            {freshness.some(({ isScheduled }) => isScheduled) ? (
              <p>
                <Command>{COMMANDS.backfillWeek}</Command> loads a week.
              </p>
            ) : null}
          </Empty>
        ) : null}
        <ul class="plain strips">
          {sets.map((set) => (
            <li key={`${set.operation} ${set.exchange}`} class="card">
              <h2>
                <a href={`${coveragePath(set)}?year=${year}`}>
                  <DataSet {...set} />
                </a>
              </h2>
              <p class="muted">
                {totalsText(set.days)}; complete to {completeTo(set)}
              </p>
              <YearStrip
                days={set.days}
                label={`${set.operation} ${set.exchange} in ${year}: ${totalsText(set.days)}`}
              />
            </li>
          ))}
        </ul>
      </>
    ),
  };
}

/** The calendar of one data set, a year at a time. */
export async function dataSetPage(context: PageContext, asked: Asked): Promise<Page> {
  const pair = pairOf(asked);
  const years = await knownYears(context, [pair]);
  const year = yearOf(asked, years);
  const [set] = await readDays(context, [pair], rangeOf(year));
  const now = today(context.clock, context.config.EOD_TIMEZONE);
  const days = set?.days ?? [];
  // Future months are left out.
  const shown = days.filter(({ day }) => day.slice(0, 7) <= now.slice(0, 7));
  return {
    title: `${pair.operation} ${pair.exchange} ${year}`,
    main: (
      <>
        <Heading title={`${pair.operation} ${pair.exchange}`}>
          {year}: {totalsText(days)}. <a href={`/dictionary/${pair.operation}`}>What it contains</a>.
        </Heading>
        <Years path={coveragePath(pair)} years={years} chosen={year} />
        <Legend />
        <section class="card" aria-label={`Days of ${year}`}>
          <YearCalendar days={shown} linkOf={(day) => coveragePath(pair, day)} />
        </section>
        {set === undefined ? null : <Missing set={set} token={context.token} />}
      </>
    ),
  };
}

/** The missing sessions by reason, and what to do about them. */
function Missing({ set, token }: { readonly set: DataSetDays; readonly token: string | null }) {
  const missing = set.days.flatMap(({ day, kind, reason, detail }) =>
    kind === 'missing' && reason !== null ? [{ day, reason, detail }] : [],
  );
  if (missing.length === 0) return null;
  return (
    <Section id="missing" title="Missing, by reason">
      <ul class="plain">
        {[...groupBy(missing, ({ reason }) => reason)].map(([reason, days]) => (
          <li key={reason}>
            <strong>{GAP_REASONS[reason]}</strong>: {plural(days.length, 'session')}, the newest{' '}
            <a href={coveragePath(set, days.at(-1)?.day)}>{days.at(-1)?.day}</a>
            {days.at(-1)?.detail == null ? null : ` (${days.at(-1)?.detail})`}
          </li>
        ))}
      </ul>
      <div class="actions">
        <ActionButton
          token={token}
          action="/actions/fill-gaps"
          label="Fill gaps of this data set"
          fields={{ operation: set.operation, exchange: set.exchange }}
        />
        {token === null ? (
          <span>
            <Command>{`${COMMANDS.fillGaps} ${set.operation}`}</Command> asks for them.
          </span>
        ) : null}
      </div>
    </Section>
  );
}
