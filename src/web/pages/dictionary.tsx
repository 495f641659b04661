import { usageError } from '../../core/errors.ts';
import { EXAMPLES, newestRowsQuery, viewQuery } from '../../load/market/examples.ts';
import { readCatalog } from '../../load/market/schema/catalog.ts';
import {
  type DataSetDescription,
  describeDataSet,
  type TableDescription,
} from '../../operations/describe-operation.ts';
import { allowedText, tablesFilledBy } from '../../operations/operation.ts';
import { dataSets } from '../../operations/registry.ts';
import { COMMANDS } from '../commands.ts';
import { Command, Empty, Facts, Section } from '../components/basics.tsx';
import { Table } from '../components/data-table.tsx';
import { Name } from '../components/names.tsx';
import { Heading, type Page, type PageContext, type Requested } from '../page.tsx';

/** All data sets, tables and views, and first queries. */
export async function dictionaryPage(context: PageContext): Promise<Page> {
  const views = (await readCatalog(context.db.pool)).filter(({ isView }) => isView);
  const described = dataSets.map(describeDataSet);
  return {
    title: 'Dictionary',
    main: (
      <>
        <Heading title="Dictionary">
          What is stored. Choose a data set to see its columns, their units, and queries to copy.
        </Heading>
        <Section id="sets" title="Data sets">
          <Table
            caption="Data sets with the tables they fill"
            rows={described}
            columns={[
              {
                head: 'Data set',
                cell: (one) => (
                  <a href={`/dictionary/${one.name}`}>
                    <Name>{one.name}</Name>
                  </a>
                ),
              },
              { head: 'Exchanges', cell: (one) => one.exchanges.join(', ') },
              {
                head: 'Scheduled',
                cell: ({ schedule }) =>
                  schedule === null ? (
                    'with files'
                  ) : (
                    <span class="nowrap">{`${schedule.on} ${schedule.at}`}</span>
                  ),
              },
              {
                head: 'Tables',
                cell: (one) => (
                  <code>{one.tables.map(({ name }) => name.replace(/^market\./, '')).join(', ')}</code>
                ),
              },
              { head: 'What it is', wide: true, cell: (one) => one.summary },
            ]}
          />
        </Section>
        <Section id="views" title="Views" note="For common queries">
          {views.length === 0 ? (
            <Empty title="There are no views yet.">
              <p>
                <Command>{COMMANDS.migrate}</Command> creates them.
              </p>
            </Empty>
          ) : (
            <Table
              caption="Views"
              rows={views}
              columns={[
                {
                  head: 'View',
                  cell: ({ name }) => (
                    <a href={`/dictionary/views/${name}`}>
                      <Name>{name}</Name>
                    </a>
                  ),
                },
                { head: 'What it shows', wide: true, cell: ({ comment }) => comment },
              ]}
            />
          )}
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

/** One data set: how it is requested, its tables with their columns, queries to copy, and a sample response. */
export async function dataSetDictionaryPage(_context: PageContext, { params }: Requested): Promise<Page> {
  const dataSet = dataSets.find(({ name }) => name === params.name);
  if (dataSet === undefined) throw usageError(`there is no data set ${params.name}`);
  const one = describeDataSet(dataSet);
  return {
    title: one.name,
    main: (
      <>
        <Heading title={one.name}>{one.summary}</Heading>
        <section class="card" aria-label="How it is requested">
          <Facts facts={factsOf(one)} />
        </section>
        {one.tables.map((table, at) => {
          const declared = tablesFilledBy(dataSet)[at];
          return (
            <TableSection
              key={table.name}
              table={table}
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
    ...(one.schedule === null ? [] : [['Scheduled', `${one.schedule.on} at ${one.schedule.at}`] as const]),
    ...one.options.map((option): readonly [string, string] => {
      const allowed = allowedText(option);
      return [`Option ${option.param}`, `${option.meaning}${allowed === null ? '' : ` (${allowed})`}`];
    }),
  ];
}

function TableSection({ table, sql }: { readonly table: TableDescription; readonly sql: string }) {
  return (
    <Section id={table.name} title={table.name}>
      <p>{table.comment}</p>
      <p class="muted">
        Key: <code>{table.key.join(', ')}</code>
      </p>
      <Copyable label={`Newest rows of ${table.name}`}>{sql}</Copyable>
      <Table
        caption={`Columns of ${table.name}`}
        rows={table.fields}
        columns={[
          {
            head: 'Column',
            cell: (field) => (
              <code>
                <Name>{field.column}</Name>
              </code>
            ),
          },
          { head: 'Type', cell: (field) => field.type },
          { head: 'Unit', cell: (field) => field.unit },
          { head: 'Source field', cell: (field) => field.source },
          { head: 'Meaning', wide: true, cell: (field) => field.meaning },
        ]}
      />
    </Section>
  );
}

/** One view with its columns, described by the comments in the database. */
export async function viewPage(context: PageContext, { params }: Requested): Promise<Page> {
  const view = (await readCatalog(context.db.pool)).find(
    ({ name, isView }) => isView && name === params.name,
  );
  if (view === undefined) throw usageError(`there is no view ${params.name}`);
  return {
    title: `market.${view.name}`,
    main: (
      <>
        <Heading title={`market.${view.name}`}>{view.comment ?? ''}</Heading>
        <ViewSection view={view} />
      </>
    ),
  };
}

function ViewSection({ view }: { readonly view: Awaited<ReturnType<typeof readCatalog>>[number] }) {
  return (
    <Section id="columns" title="Columns">
      <Copyable label={`Rows of market.${view.name}`}>{viewQuery(view.name)}</Copyable>
      <Table
        caption={`Columns of market.${view.name}`}
        rows={view.columns}
        columns={[
          {
            head: 'Column',
            cell: ({ name }) => (
              <code>
                <Name>{name}</Name>
              </code>
            ),
          },
          { head: 'Type', cell: ({ type }) => type },
          { head: 'Meaning', wide: true, cell: ({ comment }) => comment },
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
