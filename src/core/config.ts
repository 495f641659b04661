import * as z from 'zod';
import { readList, SECRET_SETTINGS } from './environment.ts';
import { usageError } from './errors.ts';
import { nearest } from './input.ts';

const whole = (low: number, high: number) =>
  z.coerce
    .number({ error: 'is not a number' })
    .int('must be a whole number')
    .min(low, `must be at least ${low}`)
    .max(high, `must be at most ${high}`);

const url = (...schemes: string[]) =>
  z.string().refine((text) => URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1)), {
    error: `must be an address that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
  });

const zone = z.string().refine(
  (name) => {
    try {
      return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }));
    } catch {
      return false;
    }
  },
  { error: 'is not a time zone, e.g. Asia/Kolkata' },
);

const list = z.string().transform((text, context) => {
  try {
    return readList(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `cannot be read: ${(error as Error).message}` });
    return z.NEVER;
  }
});

const exchanges = z
  .string()
  .transform((text) => readList(text.toUpperCase()))
  .pipe(z.array(z.enum(['BSE', 'NSE'], { error: 'knows BSE and NSE only' })).min(1, 'names no exchange'));

const windowDays = z.string().transform((text, context) => {
  const days: Record<string, number> = {};
  for (const pair of readList(text)) {
    const match = /^(\w+)=(\d{1,4})$/.exec(pair);
    if (match === null || Number(match[2]) < 1) {
      context.addIssue({ code: 'custom', message: `"${pair}" is not Operation=days` });
      return z.NEVER;
    }
    days[match[1] as string] = Number(match[2]);
  }
  return days;
});

const findingSeverity = z.string().transform((text, context) => {
  const severities: Record<string, 'info' | 'warning' | 'error' | 'off'> = {};
  for (const pair of readList(text)) {
    const match = /^(\w+)=(info|warning|error|off)$/.exec(pair);
    if (match === null) {
      context.addIssue({ code: 'custom', message: `"${pair}" is not check=info, warning, error or off` });
      return z.NEVER;
    }
    severities[match[1] as string] = match[2] as 'info' | 'warning' | 'error' | 'off';
  }
  return severities;
});

/** What is told to EOD_ALERT_WEBHOOK, where EOD_ALERT_ON does not say otherwise: what needs a person. */
const PROBLEM_KINDS = ['run_failed', 'access_key', 'late_data', 'gaps', 'suspicious'] as const;

/** The kinds of alerts that EOD_ALERT_ON may name. */
export const ALERT_KINDS = [...PROBLEM_KINDS, 'run_completed', 'night_completed'] as const;

const alertKinds = z
  .string()
  .transform((text) => readList(text.toLowerCase()))
  .pipe(
    z.array(z.enum(ALERT_KINDS, { error: `knows ${ALERT_KINDS.join(', ')} only` })).min(1, 'names no kind'),
  );

const flag = z
  .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
  .transform((text) => text === 'true' || text === '1');

/** A share in percent (`30`, `30%`) or as a fraction below one (`0.3`); becomes a fraction. */
const share = z.string().transform((text, context) => {
  const match = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text);
  const number = match === null ? Number.NaN : Number(match[1]);
  const fraction = match?.[2] !== '%' && number < 1 ? number : number / 100;
  if (fraction >= 0 && fraction <= 1) return fraction;
  context.addIssue({ code: 'custom', message: 'must be a share such as 30%' });
  return z.NEVER;
});

/** Every setting by what it is about: its check, its default, an example where it has none, and what it means, as Markdown. */
export const settingGroups = {
  'The source': {
    EOD_BASE_URL: url('http', 'https')
      .transform((text) => text.replace(/\/+$/, ''))
      .optional()
      .meta({
        description:
          'Address of the data service, `https://host:port`. Commands that need the source say so when it is missing; `eod sandbox` starts a simulated one.',
        examples: ['http://127.0.0.1:8090'],
      }),
    EOD_ACCESS_KEY: z
      .string()
      .optional()
      .meta({
        description: 'Your key. Secret: never logged, stored, shown or put into a job.',
        examples: ['your-key'],
      }),
    EOD_CALLS_PER_HOUR: whole(1, 1_000_000)
      .default(900)
      .meta({ description: 'Calls the key may make per clock hour, shared by all workers.' }),
    EOD_NIGHTLY_RESERVE: share.default(0.3).meta({
      description:
        'Share of those calls that backfills leave to the nightly runs. A share may also be written as a fraction: `0.3`.',
      examples: ['30%'],
    }),
    EOD_TIMEOUT_MS: whole(100, 3_600_000)
      .default(60_000)
      .meta({ description: 'Give up on a call after this many milliseconds.' }),
    EOD_MAX_RESPONSE_MB: whole(1, 1024)
      .default(64)
      .meta({ description: 'Refuse answers larger than this, after unpacking.' }),
    EOD_DATE_DIALECT: z
      .enum(['epoch', 'iso-date'], { error: 'must be epoch or iso-date' })
      .default('epoch')
      .meta({
        description:
          'How ranges are asked for: `epoch` (`from`/`to` in Unix seconds) or `iso-date` (`fromDate`/`toDate` as YYYY-MM-DD).',
      }),
    EOD_DATE_FORMAT: z
      .enum(['String', 'Epoch'], { error: 'must be String or Epoch' })
      .default('String')
      .meta({ description: 'Format of dates in answers: `String` or `Epoch`.' }),
    EOD_FORMAT: z
      .enum(['Json', 'Xml', 'Csv', 'CsvContent'], { error: 'must be Json, Xml, Csv or CsvContent' })
      .default('Json')
      .meta({
        description:
          'Form of the answers: `Json`, `Xml`, `Csv` or `CsvContent`. What an answer holds decides how it is read. JSON takes by far the least work: a record of a bhav copy 10 µs, in CSV six and in XML thirteen times that.',
      }),
    EOD_TLS_VERIFY: flag
      .default(true)
      .meta({ description: "Check the service's certificate. Switch off only on a network you trust." }),
  },
  'Where the data goes': {
    DATABASE_URL: url('postgres', 'postgresql')
      .optional()
      .meta({
        description:
          'Postgres 15 or newer. Unset: a private Postgres is created in `EOD_DATA_DIR`, migrated by each command and started for as long as one runs. Through a pooler only where it keeps a session for a client (pgbouncer: `pool_mode = session`), and then with the queue on Redis: BullMQ sends options with its login to Postgres that pgbouncer refuses.',
        examples: ['postgres://user:password@127.0.0.1:5432/eod'],
      }),
    REDIS_URL: url('redis', 'rediss')
      .optional()
      .meta({
        description:
          'Redis for the queue, for workers on several machines. Unset: the queue lives in Postgres.',
        examples: ['redis://127.0.0.1:6379'],
      }),
    EOD_DATA_DIR: z
      .string()
      .default('.eod')
      .meta({ description: 'Folder of the private Postgres; the demo keeps its own in `demo/` there.' }),
    EOD_KEEP_RAW: flag.default(true).meta({
      description:
        'Keep every answer and imported file, compressed and each body once, for `eod replay` ([replay.md](replay.md)).',
    }),
    EOD_KEEP_RAW_DAYS: whole(1, 100_000)
      .optional()
      .meta({
        description:
          'Answers and files older than this many days are what `eod prune` deletes. Unset: they are kept forever.',
        examples: ['400'],
      }),
  },
  'What is asked for': {
    EOD_EXCHANGES: exchanges.default(['BSE', 'NSE']).meta({
      description:
        'Exchanges in use. Each operation knows which of them it asks; `--exchange` overrides for one backfill.',
    }),
    EOD_INSTRUMENTS: list.optional().meta({
      description:
        'Instruments for operations that ask one by one: a list, or `@file` with one name a line (`#` starts a comment).',
      examples: ['RELIANCE,TCS,M&M'],
    }),
    EOD_INSTRUMENT_LIMIT: whole(1, 100_000).default(200).meta({
      description:
        'How many when `EOD_INSTRUMENTS` is unset: those with the largest turnover in the newest stored bhav copy. Each costs two calls a night and operation.',
    }),
    EOD_WINDOW_DAYS: windowDays.default({}).meta({
      description:
        'Days per request of range operations, `Operation=days,…`; each operation has its own default.',
      examples: ['GetSeriesChange=90,GetConsolidatedPledge=30'],
    }),
    EOD_LOOKBACK_SESSIONS: whole(0, 60).default(3).meta({
      description:
        'Sessions before the last loaded one that a nightly run asks for again, for late corrections.',
    }),
    EOD_HISTORY_DAYS: whole(1, 10_000).default(30).meta({
      description:
        'Days a nightly run reaches back at most, however long ago the last loaded session is: the source keeps no more. Where nothing is loaded yet it asks for tonight and the lookback; use `eod backfill` for what is older.',
    }),
  },
  When: {
    EOD_TIMEZONE: zone
      .default('Asia/Kolkata')
      .meta({ description: 'Zone of the exchanges, of "today" and of the schedules.' }),
    EOD_PUBLISHED_AT: z
      .string()
      .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day such as 21:15')
      .default('21:15')
      .meta({
        description:
          'No data of a day can be expected before this time of it, whatever earlier time an operation declares: an empty answer before it says nothing.',
      }),
    EOD_CALENDAR_FILE: z
      .string()
      .optional()
      .meta({
        description:
          'CSV of trading days and holidays that corrects or extends the built-in calendar ([calendar.md](calendar.md)).',
        examples: ['holidays.csv'],
      }),
  },
  Work: {
    EOD_CONCURRENCY: whole(1, 64).default(4).meta({
      description:
        'Windows one process works on at a time, for nightly runs and as many again for backfills. It opens twice as many database connections and three more, and some for a queue in Postgres.',
    }),
    EOD_ATTEMPTS: whole(1, 50)
      .default(5)
      .meta({ description: 'Tries per window before it counts as failed.' }),
    EOD_BACKOFF_MS: whole(1, 600_000).default(2_000).meta({
      description:
        'Pause before the second try; it doubles with every further one, half of it left to chance.',
    }),
    EOD_OUTAGE_PATIENCE_MS: whole(1_000, 86_400_000).default(3_600_000).meta({
      description:
        'How long a nightly run goes on trying a source that does not answer at all; a backfill, where somebody is watching, gives up after a sixtieth of it.',
    }),
    EOD_LOCK_TIMEOUT_MS: whole(100, 3_600_000).default(120_000).meta({
      description:
        'How long a session waits for a lock that another holds. Then it is an error that names the holder (pid, application, user, since when); windows are put off and tried again. From half of it on `/readyz` answers 503.',
    }),
    EOD_STATEMENT_TIMEOUT_MS: whole(1_000, 86_400_000)
      .default(3_600_000)
      .meta({ description: 'How long one statement may take; migrations are not limited.' }),
    EOD_SERVER_PATIENCE_MS: whole(0, 3_600_000).default(60_000).meta({
      description:
        'How long a command that does work puts up with a Postgres that is away while it plans and follows a run, and `up` with a Postgres or Redis that is not there yet when it starts (other commands then wait 10 s at most); `0`: not at all. Wrong passwords and unknown databases are told at once.',
    }),
    EOD_MAX_REJECT_SHARE: share.default(0.2).meta({
      description:
        'A window whose answer holds a larger share of rejected records fails and stores none of them: half a day must not look like a day.',
      examples: ['20%'],
    }),
    EOD_MAX_WITHDRAW_SHARE: share.default(0.1).meta({
      description:
        'Rows a whole answer no longer lists are withdrawn; where that would be a larger share of the most rows the day ever had (and more than 5), or the last row of a session that always has some, none is, and the window is `suspicious`.',
      examples: ['10%'],
    }),
    EOD_FINDING_SEVERITY: findingSeverity.default({}).meta({
      description:
        'How severe the findings of a check are, where it should not be as in [data-quality.md](data-quality.md): `previous_close=error,circuit_band=off`.',
      examples: ['circuit_band=off,previous_close=error'],
    }),
    EOD_ALERT_WEBHOOK: url('http', 'https')
      .optional()
      .meta({
        description:
          'Address alerts are posted to, as JSON with a Slack-compatible `text` ([alerts.md](alerts.md)). Unset: they are logged and kept in `etl.alerts` only.',
        examples: ['https://hooks.example.com/services/T000/B000/xxxx'],
      }),
    EOD_ALERT_ON: alertKinds.default([...PROBLEM_KINDS]).meta({
      description:
        'What is posted there, as a list; `run_completed` and `night_completed` may be named too ([alerts.md](alerts.md)).',
    }),
    EOD_ALERT_SECRET: z
      .string()
      .min(16, 'must have at least 16 characters')
      .optional()
      .meta({
        description:
          'With it posts are signed (HMAC-SHA256), so that their receiver knows whom they are from; 16 characters or more.',
        examples: ['sixteen-letters-or-more'],
      }),
    EOD_ALERT_REPEAT_HOURS: whole(1, 720)
      .default(12)
      .meta({ description: 'The same alert is not sent again for this many hours.' }),
    EOD_LATE_AFTER_MINUTES: whole(0, 1_440).default(120).meta({
      description:
        'Data that is not there so many minutes after its schedule should have asked for it is late: alert `late_data`.',
    }),
    EOD_HEARTBEAT_URL: url('http', 'https')
      .optional()
      .meta({
        description:
          'Address that is asked with GET after each complete night, so that a monitor (healthchecks.io, Uptime Kuma) notices when none is ([alerts.md](alerts.md)).',
        examples: ['https://hc-ping.com/00000000-0000-0000-0000-000000000000'],
      }),
    EOD_NOT_READY_WAIT_MS: whole(10, 600_000).default(3_000).meta({
      description:
        'First pause before asking again where the service is still preparing the answer; each further one is as long as all before it, up to a minute. Such tries do not count.',
    }),
    EOD_NOT_READY_BUDGET_MS: whole(10, 86_400_000)
      .default(900_000)
      .meta({ description: 'How long to wait in all for one answer that is being prepared.' }),
    EOD_STALL_MS: whole(1_000, 600_000)
      .default(20_000)
      .meta({ description: 'A window whose worker has been silent this long is given to another worker.' }),
    EOD_QUEUE_PREFIX: z
      .string()
      .regex(/^[a-z][a-z0-9_]{0,30}$/, 'must be lower-case letters, digits and _')
      .default('eod')
      .meta({
        description:
          'Prefix of everything in the queue. On Redis the id of the database follows it (`eod:3f0c5a9e1b2d:…`), so that several databases share one Redis.',
      }),
  },
  Watching: {
    EOD_LOG_LEVEL: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
        error: 'must be fatal, error, warn, info, debug, trace or silent',
      })
      .default('warn')
      .meta({
        description:
          'Lines on stderr from this level on: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`. At `info` each window is one line with what its steps took (`ms`: claim, fetch, read, load), its rows by outcome, attempt and state; `debug` adds stacks to errors, and has the same of each session of imported files and each answer that is loaded again. A window that ended as failed or blocked is an `error`, one that is tried again a `warn`, one that waits for its answer to be ready a `debug`; each line has operation, exchange and days. A server that is away is one line a minute.',
      }),
    EOD_LOG_FORMAT: z
      .enum(['auto', 'json', 'text'], { error: 'must be auto, json or text' })
      .default('auto')
      .meta({
        description:
          '`json`, one document a line; `text` for people; `auto`: text where stderr is a terminal, else JSON.',
      }),
    EOD_HTTP_HOST: z.string().default('127.0.0.1').meta({
      description:
        'Address `eod up` and `eod web` listen on for the [dashboard](dashboard.md), `/healthz`, `/readyz` and `/metrics`; `0.0.0.0` opens it to the network.',
    }),
    EOD_HTTP_PORT: whole(0, 65_535)
      .default(8080)
      .meta({ description: 'Its port; `0` takes a free one, named in the line `eod up` prints.' }),
    EOD_WEB_PASSWORD: z
      .string()
      .min(8, 'must have at least 8 characters')
      .optional()
      .meta({
        description:
          'Password of the dashboard, at least 8 characters; any user name goes, and is logged with what its owner does. Unset: none is asked for. Health and metrics never ask for it.',
        examples: ['a-long-password'],
      }),
    EOD_WEB_ACTIONS: flag.default(false).meta({
      description:
        'Buttons on the dashboard that resume and cancel runs, fill gaps, retry rejects and decide events. Beyond this machine (`EOD_HTTP_HOST`) they need `EOD_WEB_PASSWORD`; without it nothing starts.',
    }),
  },
};

/**
 * Every setting; the tables of docs/configuration.md, .env.example and a JSON schema are written from them by
 * `npm run docs:generate`.
 */
export const settings = {
  ...settingGroups['The source'],
  ...settingGroups['Where the data goes'],
  ...settingGroups['What is asked for'],
  ...settingGroups.When,
  ...settingGroups.Work,
  ...settingGroups.Watching,
};

const schema = z.object(settings);

export type Config = Readonly<z.output<typeof schema>>;

/**
 * Checks every setting of an environment, as `readEnvironment` gives it.
 *
 * @throws PipelineError `usage` that lists all problems at once, never a secret's value.
 */
export function loadConfig(env: Readonly<Record<string, string>>): Config {
  const result = schema.safeParse(env);
  const wrong = (result.error?.issues ?? []).map((issue) => {
    const name = String(issue.path[0]);
    const secret = (SECRET_SETTINGS as readonly string[]).includes(name);
    const value = secret ? '' : ` (it is "${env[name]}")`;
    return `  ${name} ${issue.message}${value}`;
  });
  const mistyped = unknownSettings(env).flatMap(({ name, meant }) =>
    meant === null ? [] : [`  ${name} is no setting; did you mean ${meant}?`],
  );
  const lines = [...mistyped, ...wrong];
  if (result.success && lines.length === 0) return Object.freeze(result.data);
  throw usageError(
    `the settings have ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}:\n${lines.join('\n')}`,
  );
}

/** A variable that is named like a setting and is none. */
interface UnknownSetting {
  readonly name: string;
  /** The setting that was meant, where the name is that of one but for a slip. */
  readonly meant: string | null;
}

/** A name with so many letters changed is still a mistyped one; EOD_TIMEOUT for EOD_TIMEOUT_MS is, too. */
const SLIPS = 2;

/** The variables of an environment that begin with EOD_ and are no settings. */
export function unknownSettings(env: Readonly<Record<string, string>>): UnknownSetting[] {
  const known = Object.keys(settings);
  return Object.keys(env)
    .filter((name) => name.startsWith('EOD_') && !known.includes(name))
    .map((name) => {
      const begun = known.filter((one) => one.startsWith(`${name}_`) || name.startsWith(`${one}_`));
      return { name, meant: nearest(name, known, SLIPS) ?? begun[0] ?? null };
    });
}
