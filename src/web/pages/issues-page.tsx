import { Fragment, type VNode } from 'preact';
import { count, plural } from '../../core/wording.ts';
import { type CorporateEventsFound, listEventsToDecide } from '../../load/market/corporate-events.ts';
import {
  type CheckedDays,
  countOpenFindings,
  listFindings,
  readCheckedDays,
} from '../../load/state/findings.ts';
import { countOpenRejects, openRejects } from '../../load/state/rejects.ts';
import {
  predicateOf,
  readSchemaChanges,
  type SchemaChange,
  SHOWN_DAYS,
} from '../../load/state/responses/schema-changes.ts';
import { listDoubtedWindows } from '../../load/state/windows/doubted.ts';
import { COMMANDS, draftCommand, eventCommand, reconcileCommand } from '../commands.ts';
import { ActionButton } from '../components/action-forms.tsx';
import { Command, Empty, Moment, Section } from '../components/basics.tsx';
import { DAYS, RUN, Table } from '../components/data-table.tsx';
import { DataSet, DataSetLink } from '../components/names.tsx';
import { FindingsTable, RejectsTable } from '../components/quality-tables.tsx';
import { Heading, type Page, type PageContext } from '../page.tsx';

const LISTED = 50;
const ALWAYS = { from: '0001-01-01', to: '9999-12-31' };

/** What needs a person: rejects, findings, doubted responses, changed fields, corporate events without a decision. */
export async function issuesPage(context: PageContext): Promise<Page> {
  const { db, config, token } = context;
  const zone = config.EOD_TIMEZONE;
  const [rejects, rejectCounts, { findings, total }, findingCounts, checked, doubted, events, changes] =
    await Promise.all([
      openRejects(db.drizzle, {}, LISTED),
      countOpenRejects(db.drizzle),
      listFindings(db.drizzle, { limit: LISTED }),
      countOpenFindings(db.drizzle),
      readCheckedDays(db.drizzle),
      listDoubtedWindows(db.drizzle, ALWAYS, LISTED),
      listEventsToDecide(db.pool, LISTED),
      readSchemaChanges(db.drizzle, { days: SHOWN_DAYS }),
    ]);
  const rejected = rejectCounts.reduce((sum, one) => sum + one.rejects, 0);
  const sections: readonly { readonly waiting: number; readonly noun: string; readonly section: VNode }[] = [
    {
      waiting: rejected,
      noun: 'open reject',
      section: (
        <Section id="rejects" title="Rejects" note={listedNote(rejects.length, rejected)}>
          {rejects.length === 0 ? (
            <Empty title="No record was rejected, or all are resolved." />
          ) : (
            <>
              <RejectsTable rejects={rejects} zone={zone} />
              <div class="actions">
                <ActionButton token={token} action="/actions/retry-rejects" label="Retry rejects" />
                <span>
                  <Command>{COMMANDS.retryRejects}</Command> reads them again with the current code.
                </span>
              </div>
            </>
          )}
        </Section>
      ),
    },
    {
      waiting: total,
      noun: 'open finding',
      section: (
        <Section id="findings" title="Findings" note={listedNote(findings.length, total)}>
          {findings.length === 0 ? (
            <NoFindings checked={checked} zone={zone} />
          ) : (
            <>
              <Unchecked checked={checked} />
              <p class="muted">
                {findingCounts
                  .map((one) => `${one.check.replaceAll('_', ' ')}: ${count(one.findings)} (${one.severity})`)
                  .join('; ')}
              </p>
              <FindingsTable findings={findings} />
            </>
          )}
        </Section>
      ),
    },
    {
      waiting: doubted.length,
      noun: 'suspicious window',
      section: (
        <Section
          id="suspicious"
          title="Suspicious windows"
          note="Their responses lacked more rows than may be withdrawn, so none was withdrawn"
        >
          {doubted.length === 0 ? (
            <Empty title="None." />
          ) : (
            <>
              <Table
                caption="Suspicious windows"
                rows={doubted}
                columns={[
                  { head: 'Data set', cell: (one) => <DataSetLink {...one} day={one.to} /> },
                  DAYS,
                  RUN,
                  { head: 'Why', wide: true, cell: (one) => one.reason },
                ]}
              />
              <p>
                <Command>{COMMANDS.withdrawals}</Command> lists the rows, and accepts their withdrawal.
              </p>
            </>
          )}
        </Section>
      ),
    },
    {
      waiting: changes.length,
      noun: 'changed field',
      section: (
        <Section
          id="fields"
          title="Changed fields"
          note={
            listedNote(Math.min(changes.length, LISTED), changes.length) ?? `of the last ${SHOWN_DAYS} days`
          }
        >
          {changes.length === 0 ? (
            <Empty title="The source has not changed the fields of its responses." />
          ) : (
            <ChangedFields changes={changes.slice(0, LISTED)} zone={zone} />
          )}
        </Section>
      ),
    },
    {
      waiting: events.total,
      noun: 'corporate action to decide',
      section: <Events found={events} token={token} />,
    },
  ];
  const waiting = sections.filter((one) => one.waiting > 0);
  const others = sections.filter((one) => one.waiting === 0);
  const counts = [
    ...waiting.map((one) => plural(one.waiting, one.noun)),
    ...(checked.unchecked > 0 ? [plural(checked.unchecked, 'unchecked day')] : []),
  ];
  return {
    title: 'Data quality',
    main: (
      <>
        <Heading title="Data quality">
          {counts.length === 0 ? 'Nothing needs a person.' : `${counts.join(', ')}.`}
        </Heading>
        {[...waiting, ...others].map(({ noun, section }) => (
          <Fragment key={noun}>{section}</Fragment>
        ))}
      </>
    ),
  };
}

/** Says that nothing was found, but only of days on which it was looked for. */
function NoFindings({ checked, zone }: { readonly checked: CheckedDays; readonly zone: string }) {
  if (checked.unchecked === 0) {
    const none = checked.loaded === 0;
    return (
      <Empty
        title={none ? 'No bhav copy is loaded to check.' : 'The data sets do not contradict each other.'}
      >
        <p>
          {none ? null : (
            <>
              Every day with a bhav copy is checked, the last at{' '}
              <Moment iso={checked.checkedAt} zone={zone} />.{' '}
            </>
          )}
          Checks run after each night; <Command>{COMMANDS.reconcile}</Command> runs them now.
        </p>
      </Empty>
    );
  }
  const all = checked.unchecked === checked.loaded;
  return (
    <Empty title={all ? 'No check has run yet.' : 'No contradictions on the days that were checked.'}>
      <Unchecked checked={checked} />
    </Empty>
  );
}

/** Days that nobody can say anything about, and how to check them. */
function Unchecked({ checked: { loaded, unchecked, from, to } }: { readonly checked: CheckedDays }) {
  if (from === null || to === null) return null;
  return (
    <p>
      {count(unchecked)} of {plural(loaded, 'day')} with a bhav copy, between {from} and {to}, were not
      checked since they were loaded: <Command>{reconcileCommand(from, to)}</Command>.
    </p>
  );
}

const listedNote = (listed: number, total: number) =>
  total > listed ? `the newest ${count(listed)} of ${count(total)}` : undefined;

function Events({ found, token }: { readonly found: CorporateEventsFound; readonly token: string | null }) {
  const { events, total } = found;
  return (
    <Section id="events" title="Corporate events to decide" note={listedNote(events.length, total)}>
      <Table
        empty={
          <Empty title="None needs a decision.">
            <p>
              <Command>{COMMANDS.import}</Command> loads the exchanges' lists of corporate actions.
            </p>
          </Empty>
        }
        caption="Corporate events that need a decision"
        rows={events}
        columns={[
          { head: 'Event', cell: (one) => one.id },
          { head: 'Ex-date', cell: (one) => <span class="nowrap">{one.exDate}</span> },
          { head: 'The list says', wide: true, cell: (one) => one.purpose },
          { head: 'Why', wide: true, cell: (one) => one.statusReason },
          {
            head: 'Decide',
            cell: (one) =>
              token === null ? (
                <Command>{eventCommand(one.id)}</Command>
              ) : (
                <DecideForm id={one.id} token={token} />
              ),
          },
        ]}
      />
    </Section>
  );
}

function DecideForm({ id, token }: { readonly id: string; readonly token: string }) {
  return (
    <form method="post" action="/actions/events" class="action decide">
      <input type="hidden" name="token" value={token} />
      <input type="hidden" name="event" value={id} />
      <label>
        Prices ×{' '}
        <input
          name="factor"
          size={5}
          placeholder="1:2"
          pattern="\s*\d+\s*:\s*\d+\s*"
          title="two whole numbers, such as 1:2, which halves prices before the event"
          aria-label={`Factor of ${id}: two whole numbers such as 1:2, which halves prices`}
        />
      </label>
      <button type="submit" name="decision" value="factor" class="button button-plain">
        Apply
      </button>
      <button type="submit" name="decision" value="ignore" class="button button-plain">
        Ignore
      </button>
    </form>
  );
}

/** What the source has changed about the fields of its responses. */
function ChangedFields({
  changes,
  zone,
}: {
  readonly changes: readonly SchemaChange[];
  readonly zone: string;
}) {
  return (
    <Table
      caption="Changed fields"
      rows={changes}
      columns={[
        { head: 'Field', cell: (one) => one.field },
        { head: 'Data set', cell: (one) => <DataSet {...one} /> },
        { head: 'What', wide: true, cell: predicateOf },
        { head: 'Seen', cell: (one) => <Moment iso={one.at} zone={zone} /> },
        RUN,
        {
          head: 'Declare it',
          cell: (one) => (one.change === 'new' ? <Command>{draftCommand(one.operation)}</Command> : null),
        },
      ]}
    />
  );
}
