// Writes the parts of the documentation that are generated from the code: `npm run docs:generate`.
// A test fails if a page differs from what this would write.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../src/core/config.ts';
import { type ErrorFacts, type ErrorKind, PipelineError } from '../src/core/errors.ts';
import {
  assessEvidence,
  decideFailure,
  type FailureAction,
  MAX_BACKOFF_MS,
  MAX_LOST_WORKERS,
  MAX_RETRY_AFTER_MS,
  type Scope,
  type Situation,
  STATUS_RULES,
} from '../src/jobs/policy/failure-policy.ts';
import { etlDescriptions } from '../src/load/schema/comments-and-functions.ts';
import { dataSetsFilling, tables } from '../src/operations/registry.ts';
import { RUN_TRANSITIONS } from '../src/state/runs/runs.ts';
import { WINDOW_TRANSITIONS } from '../src/state/windows/transitions.ts';
import { envExample, settingsSchema, settingTables } from './settings-docs.ts';

const END = '<!-- End of the generated part. -->';

/** Examples of errors, several for a kind if they are handled differently. */
const EXAMPLES: Readonly<Record<ErrorKind, readonly { text: string; facts?: Partial<ErrorFacts> }[]>> = {
  credential: [{ text: 'the access key is refused' }],
  monthly_quota: [{ text: 'the monthly quota is used up', facts: { diagnostic: 'line' } }],
  hourly_quota: [{ text: 'the hourly quota is used up', facts: { diagnostic: 'line' } }],
  not_ready: [{ text: 'the response is not ready yet', facts: { diagnostic: 'line' } }],
  no_data: [{ text: 'no data, with an error status', facts: { diagnostic: 'line' } }],
  operation_blocked: [{ text: 'no right to the operation', facts: { diagnostic: 'line' } }],
  exchange_blocked: [{ text: 'no right to the exchange', facts: { diagnostic: 'line' } }],
  instrument_blocked: [{ text: 'no right to the instrument', facts: { diagnostic: 'line' } }],
  range_refused: [
    { text: 'the range is refused', facts: { diagnostic: 'line' } },
    { text: 'the range is refused, with a limit', facts: { diagnostic: 'line', limitDays: 7 } },
  ],
  bad_request: [{ text: 'the request is refused as wrong', facts: { diagnostic: 'line' } }],
  unknown_diagnostic: [{ text: 'a line that is not known', facts: { diagnostic: 'line' } }],
  timeout: [{ text: 'no complete response in time' }],
  network: [
    { text: 'no connection' },
    { text: 'the connection breaks in the middle', facts: { cutShort: true } },
  ],
  wrong_address: [{ text: 'the address leads to another kind of server' }],
  http_status: STATUS_RULES.map(({ statuses, example }) => ({
    text: statuses,
    facts: { status: example },
  })),
  too_large: [{ text: 'the response is too large' }],
  unreadable: [
    { text: 'the response cannot be read' },
    { text: 'the response breaks off', facts: { cutShort: true } },
  ],
  database_unreachable: [{ text: 'Postgres is unreachable' }],
  database_cannot_store: [{ text: 'Postgres cannot store: its disk is full, or it is read-only' }],
  database_locked: [
    { text: 'another session holds a lock in Postgres for longer than `EOD_LOCK_TIMEOUT_MS`' },
  ],
  database: [{ text: 'Postgres refuses a statement' }],
  defect: [{ text: 'a defect of this program' }],
  usage: [{ text: 'a setting is wrong' }],
  aborted: [{ text: 'the worker stops' }],
};

const config = loadConfig({});

const FIRST: Situation = {
  attempt: 1,
  storeFailures: 0,
  notReadyMs: 0,
  days: 1,
  isAhead: false,
  intoHourMs: 1_800_000,
  nextHourMs: 1_800_000,
  outageMs: null,
  queue: 'nightly',
  chance: 0,
};

/** The situations in which an error is decided on: a column of the table each. */
const SITUATIONS: readonly { readonly heading: string; readonly situation: Situation }[] = [
  { heading: 'first', situation: FIRST },
  { heading: 'of a range of 30 days', situation: { ...FIRST, days: 30 } },
  {
    heading: 'last attempt, or `EOD_NOT_READY_BUDGET_MS` is over',
    situation: { ...FIRST, attempt: config.EOD_ATTEMPTS, notReadyMs: config.EOD_NOT_READY_BUDGET_MS },
  },
  {
    heading: 'the source is down',
    situation: { ...FIRST, outageMs: 0 },
  },
  {
    heading: '… for longer than `EOD_OUTAGE_PATIENCE_MS`',
    situation: { ...FIRST, outageMs: config.EOD_OUTAGE_PATIENCE_MS + 1 },
  },
  { heading: 'while its response is stored', situation: { ...FIRST, storeFailures: 1 } },
];

const SCOPE_TEXTS: Readonly<Record<Scope, string>> = {
  window: '',
  older: ', with what waits of older days',
  operation: ', with what is left of the operation',
  exchange: ', with what is left of the exchange',
  key: ', with what is left of the run; other open runs pause',
};

function wording(action: FailureAction): string {
  switch (action.act) {
    case 'retry':
      return 'try again, counted';
    case 'postpone':
      return 'try again, not counted';
    case 'await_data':
      return `request again in ${action.delayMs / 1_000} s, not counted`;
    case 'rate_limit':
      return 'no call until the next hour';
    case 'split':
      return `split into ${action.days} days`;
    case 'keep_response':
      return `store the response again${action.isStoppingCalls ? '; no call until then' : ''}`;
    case 'put_back':
      return 'put back';
    case 'skip':
      return '`skipped`';
    case 'end':
      return `\`${action.state}\`${SCOPE_TEXTS[action.scope]}`;
  }
}

/** More than any limit but EOD_ATTEMPTS. */
const MANY_ATTEMPTS = 40;

/** The maximum number of attempts, if only that limits how often a window is tried. */
function attemptsOf(error: PipelineError): string {
  const attempts = (EOD_ATTEMPTS: number) => {
    const act = (attempt: number) =>
      decideFailure(error, { ...FIRST, attempt }, { ...config, EOD_ATTEMPTS }).act;
    if (act(1) !== 'retry') return act(1) === 'end' ? 1 : null;
    let attempt = 1;
    while (act(attempt) === 'retry') attempt += 1;
    return attempt;
  };
  const [least, most] = [attempts(1), attempts(MANY_ATTEMPTS)];
  if (least === null || most === null) return 'not counted';
  if (least === most) return String(least);
  const bounds = [least > 1 ? `, at least ${least}` : '', most < MANY_ATTEMPTS ? `, at most ${most}` : ''];
  return `\`EOD_ATTEMPTS\`${bounds.join('')}`;
}

const minutes = (milliseconds: number) => `${milliseconds / 60_000} minutes`;

/** The decisions of the failure policy as a table. */
function failureTable(): string {
  const failures = (Object.keys(EXAMPLES) as ErrorKind[]).flatMap((kind) =>
    EXAMPLES[kind].map(({ text, facts }) => ({
      text,
      kind,
      error: new PipelineError(text, { ...facts, kind } as ErrorFacts),
    })),
  );
  const rows = failures.map(({ text, kind, error }) => {
    const [first = '', ...others] = SITUATIONS.map(({ situation }) =>
      wording(decideFailure(error, situation, config)),
    );
    return [
      text,
      `\`${kind}\``,
      attemptsOf(error),
      first,
      ...others.map((other) => (other === first ? '' : other)),
    ];
  });
  const headings = ['what goes wrong', 'kind', 'attempts', ...SITUATIONS.map(({ heading }) => heading)];
  const lines = [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  const lost = wording(decideFailure(new PipelineError('', { kind: 'defect' }), FIRST, config));
  const counted = failures.filter(({ error }) => assessEvidence(error, 1).source === 'failure');
  const kindsAfterWhich = (key: 'refused' | 'accepted') =>
    [...new Set(failures.filter(({ error }) => assessEvidence(error, 1).key === key).map(({ kind }) => kind))]
      .map((kind) => `\`${kind}\``)
      .join(', ');
  return [
    ...lines.map((line) => line.replaceAll(/\| {2}(?=\|)/g, '| ')),
    '',
    `Pauses between counted attempts double from \`EOD_BACKOFF_MS\` to ${minutes(MAX_BACKOFF_MS)}, half of each left to chance. A \`Retry-After\` is followed`,
    `instead, for ${minutes(MAX_RETRY_AFTER_MS)} at most and never longer than the run waits for a source that is down: \`EOD_OUTAGE_PATIENCE_MS\`, of a backfill a sixtieth of it.`,
    `A window that has lost its worker more than ${MAX_LOST_WORKERS} times ends as ${lost}. The source is taken as down after five of these failures in a row: ${counted.map(({ text }) => text).join('; ')}.`,
    `A key that is being tried is taken as refused after ${kindsAfterWhich('refused')}, as accepted after ${kindsAfterWhich('accepted')}.`,
  ].join('\n');
}

/** The transitions of a window or a run as a table. */
function transitionTable(
  transitions: Readonly<Record<string, { from: readonly string[]; to: readonly string[]; when: string }>>,
): string {
  const code = (states: readonly string[]) => states.map((state) => `\`${state}\``).join(', ');
  return [
    '| transition | from | to | when |',
    '| --- | --- | --- | --- |',
    ...Object.entries(transitions).map(
      ([name, { from, to, when }]) => `| ${name} | ${code(from) || 'nothing'} | ${code(to)} | ${when} |`,
    ),
  ].join('\n');
}

const ETL_SCHEMA = 'src/state/schema';
const VIEWS = ['instruments', 'prices', 'views', 'views_computed'].map(
  (name) => `migrations/repeatable/${name}.sql`,
);

/** The tables of the schema etl that people query; the others serve the work itself. */
const READ_BY_PEOPLE =
  'runs loads windows coverage sessions rejects withdrawals findings issues alerts responses';

/** The tables of the schema etl that people query, with what a row is. */
function tableList(): string {
  return etlDescriptions()
    .filter(({ name }) => READ_BY_PEOPLE.split(' ').includes(name))
    .map(({ name, comment }) => `- \`etl.${name}\`: ${comment}`)
    .join('\n');
}

/** The tables of data sets, with what a row is and what identifies it. */
function dataTableList(): string {
  return tables
    .map((table) => {
      const filling = dataSetsFilling([table]);
      const main = filling.filter(({ shapes }) => shapes[0].table === table);
      const titles = (main.length > 0 ? main : filling).map(({ title }) => title);
      return `- \`market.${table.name}\` (${[...new Set(titles)].join(', ')}): ${table.comment} Key: ${table.key.join(', ')}.`;
    })
    .join('\n');
}

/** What the comments of SQL files say of the views, tables and functions of the schema `market`, in their order. */
function viewList(): string {
  const sql = VIEWS.map((file) => readFileSync(pageFile(file), 'utf8')).join('\n');
  const comments = sql.matchAll(
    /^COMMENT ON (?:TABLE|VIEW|FUNCTION|AGGREGATE) market\.(\w+)(?:\(([^)]*)\))? IS '((?:[^']|'')*)';$/gm,
  );
  return [...comments]
    .map(([, name = '', types = '', quoted = '']) => {
      const others = types
        .split(',')
        .map(() => '[^,)]*')
        .join(',');
      const declared = new RegExp(
        `^CREATE (?:OR REPLACE )?(?:FUNCTION|AGGREGATE) market\\.(${name}\\(${others}\\))`,
        'm',
      );
      const call = declared.exec(sql)?.[1] ?? name;
      return `- \`market.${call}\`: ${quoted.replaceAll("''", "'").replace(/<(?=\w)/g, '&lt;')}`;
    })
    .join('\n');
}

/** The generated parts of pages: the page, the file that a part is generated from, and its text. */
const PARTS: readonly { readonly page: string; readonly source: string; readonly text: () => string }[] = [
  { page: 'docs/reliability.md', source: 'src/jobs/policy/failure-policy.ts', text: failureTable },
  {
    page: 'docs/reliability.md',
    source: 'src/state/windows/transitions.ts',
    text: () => transitionTable(WINDOW_TRANSITIONS),
  },
  { page: 'docs/configuration.md', source: 'src/core/settings.ts', text: settingTables },
  { page: 'docs/tables.md', source: 'src/operations', text: dataTableList },
  { page: 'docs/tables.md', source: ETL_SCHEMA, text: tableList },
  { page: 'docs/tables.md', source: VIEWS.join(', '), text: viewList },
  {
    page: 'docs/reliability.md',
    source: 'src/state/runs/runs.ts',
    text: () => transitionTable(RUN_TRANSITIONS),
  },
];

/** Files that are generated as a whole. */
export const GENERATED_FILES: Readonly<Record<string, () => string>> = {
  '.env.example': envExample,
  'docs/configuration.schema.json': settingsSchema,
};

/** Pages that have a generated part. */
export const GENERATED_PAGES: readonly string[] = [...new Set(PARTS.map(({ page }) => page))];

/** The file of a page. */
export function pageFile(page: string): string {
  return fileURLToPath(new URL(`../${page}`, import.meta.url));
}

/** Replaces the generated parts in the text of a page. @throws Error if the page has no section for one of them. */
export function withGeneratedParts(page: string, text: string): string {
  return PARTS.filter((part) => part.page === page).reduce((before, { source, text: generate }) => {
    const mark = `<!-- Generated by \`npm run docs:generate\` from ${source}. -->`;
    const begin = before.indexOf(mark);
    const end = before.indexOf(END, begin);
    if (begin < 0 || end < 0) throw new Error(`${page} has no section for the part generated from ${source}`);
    return `${before.slice(0, begin + mark.length)}\n\n${generate()}\n\n${before.slice(end)}`;
  }, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, generate] of Object.entries(GENERATED_FILES)) writeFileSync(pageFile(file), generate());
  for (const page of GENERATED_PAGES) {
    const file = pageFile(page);
    writeFileSync(file, withGeneratedParts(page, readFileSync(file, 'utf8')));
  }
}
