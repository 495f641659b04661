import { usageError } from '../../core/errors.ts';
import { knownYears, listDataSets } from '../../jobs/runs/read-coverage.ts';
import { EXAMPLES, newestRowsQuery, viewQuery } from '../../load/market/examples.ts';
import { readCatalog } from '../../load/market/schema/catalog.ts';
import { type DataSetDescription, describeDataSet } from '../../operations/describe-operation.ts';
import {
  allowedText,
  BHAV_COPY,
  type DataSet as Declared,
  scheduleText,
  tablesFilledBy,
} from '../../operations/operation.ts';
import { dataSets, namedBy, titleOf } from '../../operations/registry.ts';
import { Facts, Section, Years } from '../components/basics.tsx';
import { Table } from '../components/data-table.tsx';
import { byTitle, DataSet, groupTitle, Name } from '../components/names.tsx';
import { Heading, type Page, type PageContext, pageWithoutRows, type Requested } from '../page.tsx';
import { rangeOfYear, yearOf } from './path-values.ts';
import { hoursText, readLateness, readPrices, readTrends, withSessions } from './trends.tsx';

/** The year that is shown if none is requested, and all data sets with rows. */
async function whatIsKnown(context: PageContext, requested: Requested, name?: string) {
  const pairs = (await listDataSets(context)).filter(({ operation }) => operation === (name ?? operation));
  const { years, latest } = await knownYears(context, pairs);
  return { pairs, years, year: latest === null ? null : yearOf(requested, { years, latest }) };
}

/** All data sets, tables and views, and first queries. */
export async function dataPage(context: PageContext, requested: Requested): Promise<Page> {
  const { pairs, year } = await whatIsKnown(context, requested);
  if (year === null) return pageWithoutRows('Data', context);
  const [catalog, lateness] = await Promise.all([
    readCatalog(context.db.pool),
    readLateness(context, withSessions(pairs), rangeOfYear(year)),
  ]);
  const described = byTitle(
    dataSets.map((one) => ({ ...describeDataSet(one), operation: one.name, exchange: '' })),
  );
  return {
    title: 'Data',
    main: (
      <>
        <Heading title="Data">
          What is stored. Choose a data set to see its columns, how many rows came when, and queries to copy.
        </Heading>
        <Section id="sets" title="Data sets">
          <Table
            caption="Data sets with the tables they fill"
            rows={described}
            groupOf={groupTitle}
            columns={[
              {
                head: 'Data set',
                cell: ({ name }) => (
                  <a href={`/data/${name}`}>
                    <DataSet operation={name} />
                  </a>
                ),
              },
              { head: 'Exchanges', cell: (one) => one.exchanges.join(', ') },
              {
                head: 'Scheduled',
                cell: ({ schedule }) =>
                  schedule === null ? 'with files' : <span class="nowrap">{scheduleText(schedule)}</span>,
              },
              {
                head: `Stored after, ${year}`,
                cell: ({ name }) =>
                  lateness
                    .filter((one) => one.operation === name && one.median !== null)
                    .map(({ exchange, median }) => (
                      <span key={exchange} class="block nowrap">
                        {`${exchange} ${hoursText(median ?? 0)}`}
                      </span>
                    )),
              },
              { head: 'What it is', wide: true, cell: (one) => one.summary },
            ]}
          />
          <p class="muted">
            Stored after: the median from the time when sessions were due to the time when they were stored.
          </p>
        </Section>
        <Section id="views" title="Views" note="For common queries">
          <Table
            caption="Views"
            rows={catalog.filter(({ isView }) => isView)}
            columns={[
              {
                head: 'View',
                cell: ({ name }) => (
                  <a href={`/data/${name}`}>
                    <Name>{name}</Name>
                  </a>
                ),
              },
              { head: 'What it shows', wide: true, cell: ({ comment }) => comment },
            ]}
          />
        </Section>
        <Section id="examples" title="First queries">
          {EXAMPLES.map(({ title, sql }) => (
            <div key={title}>
              <h3>{title}</h3>
              <Copyable label={title}>{sql}</Copyable>
            </div>
          ))}
        </Section>
      </>
    ),
  };
}

/** A data set or a view, with its columns and queries to copy; of a data set also how many rows came when. */
export async function relationPage(context: PageContext, requested: Requested): Promise<Page> {
  const { name = '' } = requested.params;
  const dataSet = namedBy(dataSets, name);
  if (dataSet !== undefined) return dataSetPage(context, requested, dataSet);
  const view = (await readCatalog(context.db.pool)).find((one) => one.isView && one.name === name);
  if (view === undefined) throw usageError(`there is no data set or view ${name}`);
  const title = `market.${view.name}`;
  return {
    title,
    main: (
      <>
        <Heading title={title}>{view.comment ?? ''}</Heading>
        <Columns
          table={{ name: title, columns: view.columns.map((one) => ({ ...one, meaning: one.comment })) }}
          sql={viewQuery(view.name)}
        />
      </>
    ),
  };
}

async function dataSetPage(context: PageContext, requested: Requested, dataSet: Declared): Promise<Page> {
  const { pairs, years, year } = await whatIsKnown(context, requested, dataSet.name);
  const one = describeDataSet(dataSet);
  const exchanges = pairs
    .map(({ exchange }) => exchange)
    .sort()
    .reverse();
  const [prices, trends] = await Promise.all([
    year === null || dataSet.name !== BHAV_COPY ? null : readPrices(context, requested, exchanges, year),
    year === null ? null : readTrends(context, pairs, rangeOfYear(year)),
  ]);
  const path = `/data/${one.name}`;
  return {
    title: titleOf(one.name),
    main: (
      <>
        <Heading title={titleOf(one.name)}>{one.summary}</Heading>
        {year === null ? null : <Years path={path} years={years} chosen={year} />}
        {prices}
        {trends}
        <section class="card" aria-label="How it is requested">
          <Facts facts={factsOf(one)} />
        </section>
        {one.tables.map((table, at) => {
          const declared = tablesFilledBy(dataSet)[at];
          return (
            <Columns
              key={table.name}
              table={{ ...table, columns: table.fields.map((field) => ({ ...field, name: field.column })) }}
              sql={declared === undefined ? '' : newestRowsQuery(declared)}
            />
          );
        })}
        {one.sample === null ? null : (
          <Section id="sample" title="A response as the source sends it">
            <Copyable label="Sample response">{JSON.stringify(one.sample.response, null, 2)}</Copyable>
          </Section>
        )}
      </>
    ),
  };
}

function factsOf(one: DataSetDescription): (readonly [string, string])[] {
  return [
    ...(one.exchanges.length === 0 ? [] : [['Exchanges', one.exchanges.join(', ')] as const]),
    [one.schedule === null ? 'Comes from' : 'Requested by', one.windows],
    ...(one.instruments === null ? [] : [['Instruments', one.instruments] as const]),
    ...(one.schedule === null ? [] : [['Scheduled', scheduleText(one.schedule)] as const]),
    ...one.options.map((option): readonly [string, string] => {
      const allowed = allowedText(option);
      return [`Option ${option.param}`, `${option.meaning}${allowed === null ? '' : ` (${allowed})`}`];
    }),
  ];
}

interface Relation {
  readonly name: string;
  readonly comment?: string;
  readonly key?: readonly string[];
  readonly columns: readonly {
    readonly name: string;
    readonly type: string;
    readonly unit?: string | null;
    readonly source?: string;
    readonly meaning: string | null;
  }[];
}

/** A table or view with its columns. */
function Columns({ table, sql }: { readonly table: Relation; readonly sql: string }) {
  const { name, comment, key, columns } = table;
  return (
    <Section id={name} title={name}>
      {comment === undefined ? null : <p>{comment}</p>}
      {key === undefined ? null : (
        <p class="muted">
          Key: <code>{key.join(', ')}</code>
        </p>
      )}
      <Copyable label={`Rows of ${name}`}>{sql}</Copyable>
      <Table
        caption={`Columns of ${name}`}
        rows={columns}
        columns={[
          {
            head: 'Column',
            cell: (one) => (
              <code>
                <Name>{one.name}</Name>
              </code>
            ),
          },
          { head: 'Type', cell: (one) => one.type },
          ...(key === undefined
            ? []
            : [
                { head: 'Unit', cell: (one: Relation['columns'][number]) => one.unit },
                { head: 'Source field', cell: (one: Relation['columns'][number]) => one.source },
              ]),
          { head: 'Meaning', wide: true, cell: (one) => one.meaning },
        ]}
      />
    </Section>
  );
}

/** SQL or a record; the script adds a button that copies it. */
function Copyable({ label, children }: { readonly label: string; readonly children: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard.
    <section class="scroll" aria-label={label} tabIndex={0}>
      <pre data-copy="">{children}</pre>
    </section>
  );
}
