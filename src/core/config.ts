import * as z from 'zod';
import { isDay } from './days.ts';
import { fileSettings, readList, readSecretFiles, SECRET_SETTINGS } from './environment.ts';
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

/** Whether an address names nothing but a server and a path. It is shown and logged, so it must not contain secrets. */
function isPlainAddress(text: string): boolean {
  const { username, password } = new URL(text);
  return username === '' && password === '' && !/[?#]/.test(text);
}

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

const operationExchanges = z.string().transform((text, context) => {
  const exchanges: Record<string, string[]> = {};
  for (const pair of readList(text)) {
    const match = /^(\w+)=(\w+(?:\+\w+)*)$/.exec(pair);
    if (match === null) {
      context.addIssue({ code: 'custom', message: `"${pair}" is not Operation=EXCHANGE+EXCHANGE` });
      return z.NEVER;
    }
    exchanges[match[1] as string] = [...new Set((match[2] as string).toUpperCase().split('+'))];
  }
  return exchanges;
});

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

/** The default of EOD_ALERT_ON: the alerts that need a person. */
const PROBLEM_KINDS = [
  'run_failed',
  'access_key',
  'cannot_store',
  'late_data',
  'gaps',
  'suspicious',
] as const;

/** The kinds of alerts that EOD_ALERT_ON may name. */
export const ALERT_KINDS = [...PROBLEM_KINDS, 'run_completed', 'night_completed'] as const;

const alertKinds = z
  .string()
  .transform((text) => readList(text.toLowerCase()))
  .pipe(
    z.array(z.enum(ALERT_KINDS, { error: `knows ${ALERT_KINDS.join(', ')} only` })).min(1, 'names no kind'),
  );

/** Addresses of proxies, also as ranges. */
const proxies = z
  .string()
  .transform((text) => readList(text))
  .pipe(
    z
      .array(
        z
          .string()
          .refine((one) => z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]).safeParse(one).success, {
            error: 'must list addresses or ranges of addresses, such as 10.0.0.7 or 10.0.0.0/24',
          }),
      )
      .min(1, 'names no address'),
  );

/** The address of a proxy, which is often written without `http://`. */
const proxy = z
  .string()
  .transform((text) => (text.includes('://') ? text : `http://${text}`))
  .pipe(url('http', 'https'));

const flag = z
  .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
  .transform((text) => text === 'true' || text === '1');

/** A share, in percent (`30`, `30%`) or as a fraction below one (`0.3`). Its value is a fraction. */
const share = z.string().transform((text, context) => {
  const match = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text);
  const number = match === null ? Number.NaN : Number(match[1]);
  const fraction = match?.[2] !== '%' && number < 1 ? number : number / 100;
  if (fraction >= 0 && fraction <= 1) return fraction;
  context.addIssue({ code: 'custom', message: 'must be a share such as 30%' });
  return z.NEVER;
});

/**
 * Every setting, grouped by topic: its validation, its default (or an example where it has none) and its description
 * in Markdown.
 */
export const settingGroups = {
  'The source': {
    EOD_BASE_URL: url('http', 'https')
      .refine((text) => isPlainAddress(text), {
        error:
          'must be an address without user, password, query (?) and fragment (#): the key goes into EOD_ACCESS_KEY, and eod adds the rest of each call',
        when: ({ value }) => typeof value === 'string' && URL.canParse(value),
      })
      .transform((text) => text.replace(/\/+$/, ''))
      .optional()
      .meta({
        description:
          'Address of the data service, `https://host:4532`. Commands that need the source say so when it is missing; `eod sandbox` starts a simulated one.',
        examples: ['http://127.0.0.1:8090'],
      }),
    EOD_ACCESS_KEY: z
      .string()
      .optional()
      .meta({
        description: 'Your key. Secret: never logged, stored, shown or put into a job.',
        examples: ['your-key'],
      }),
    EOD_TRIAL_DAY: z
      .string()
      .refine(isDay, { error: 'must be a day such as 2025-02-27' })
      .optional()
      .meta({
        description:
          'For a trial address, which answers for one day of the past whatever is asked: that day. It is "today" for everything that is asked for, and records keep the day that they have themselves. Unset: the address serves the days that are asked for.',
        examples: ['2025-02-27'],
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
    EOD_MAX_RESPONSE_MB: whole(1, 1024).default(64).meta({
      description:
        'Refuse answers larger than this, after unpacking. An answer or file that has to be parsed as a whole (XML, `CsvContent`, JSON and CSV of an odd form) is also refused if that would take more than 60 % of the heap of the process, which `NODE_OPTIONS=--max-old-space-size=MB` sets: with 512 MB, CSV of some 25 MB, or XML of 60 MB.',
    }),
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
          'Format to ask for: `Json`, `Xml`, `Csv` or `CsvContent`. An answer is read by the format it really has. JSON and CSV are by far the fastest: 10 µs for a record of a bhav copy; `CsvContent` takes six times and XML thirteen times as long. Numbers are stored and compared as they are printed, and the source prints some with 15 digits in JSON and with 17 in CSV and XML: after a change of format, each row whose digits differ gets one revision when it is asked for again. `eod doctor` warns of that.',
      }),
    EOD_COUNT: z.enum(['check', 'ignore'], { error: 'must be check or ignore' }).default('check').meta({
      description:
        'What `count` in an answer means: `check`: the number of its records, so an answer with fewer may be cut and is asked for again; if the same comes again, its rows are loaded, nothing is withdrawn, and its days are missing (`count_mismatch`). `ignore`: something else.',
    }),
    EOD_TLS_VERIFY: flag
      .default(true)
      .meta({ description: "Verify the service's certificate. Turn this off only on a network you trust." }),
  },
  'The network': {
    HTTPS_PROXY: proxy.optional().meta({
      description:
        'Proxy for addresses that begin with `https://`: of the source, the webhook, the monitor and the receiver of traces. The proxy has to allow CONNECT to their ports. User and password may be part of the address. Unset: `HTTP_PROXY`. As in other programs, names in small letters (`https_proxy`) come first.',
      examples: ['http://proxy.example.com:3128'],
    }),
    HTTP_PROXY: proxy.optional().meta({
      description: 'Proxy for addresses that begin with `http://`.',
      examples: ['http://proxy.example.com:3128'],
    }),
    NO_PROXY: z
      .string()
      .transform((text) => text.split(/[\s,]+/).filter((name) => name !== ''))
      .optional()
      .meta({
        description:
          'Hosts that are called directly: names (`example.com` includes `data.example.com`), addresses, each also with a port (`data.example.com:4532`); `*`: all. This machine itself (`localhost`, `127.0.0.1`) always is. Postgres and Redis never go through a proxy.',
        examples: ['.internal,10.0.0.7'],
      }),
  },
  'Where the data goes': {
    DATABASE_URL: url('postgres', 'postgresql')
      .optional()
      .meta({
        description:
          'Address of Postgres 15 or newer. Unset: a private Postgres is created in `EOD_DATA_DIR`; it is migrated by each command and runs only while a command does. A connection pooler must keep one session for each client (pgbouncer: `pool_mode = session`).',
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
          '`eod prune` deletes answers and files that are older than this many days. Unset: they are kept forever.',
        examples: ['400'],
      }),
  },
  'What is asked for': {
    EOD_EXCHANGES: exchanges.default(['BSE', 'NSE']).meta({
      description:
        'Exchanges to ask for. Each operation is available for some of them; `--exchange` overrides the setting for one backfill.',
    }),
    EOD_OPERATION_EXCHANGES: operationExchanges.default({}).meta({
      description:
        'Exchanges to ask for of single operations, `Operation=EXCHANGE+EXCHANGE,…`, instead of those that the operation declares and `EOD_EXCHANGES` limits. Any exchange may be named; the source says if it has none of that name.',
      examples: ['GetBhavCopyCM=BSE,GetCircuitBreakers=NSE+BSE'],
    }),
    EOD_INSTRUMENTS: list.optional().meta({
      description:
        'Instruments for the operations that take one instrument a request: a list, or `@file` with one name a line (`#` starts a comment).',
      examples: ['RELIANCE,TCS,M&M'],
    }),
    EOD_INSTRUMENT_LIMIT: whole(1, 100_000).default(200).meta({
      description:
        'How many instruments to ask for when `EOD_INSTRUMENTS` is unset: those with the largest turnover in the newest stored bhav copy. Each of them costs two calls per night and operation.',
    }),
    EOD_WINDOW_DAYS: windowDays.default({}).meta({
      description:
        'Days per request of range operations, `Operation=days,…`; each operation has its own default.',
      examples: ['GetSeriesChange=90,GetConsolidatedPledge=30'],
    }),
    EOD_LOOKBACK_SESSIONS: whole(0, 60).default(3).meta({
      description:
        'How many sessions before the last loaded one a nightly run asks for again, to get late corrections.',
    }),
    EOD_HISTORY_DAYS: whole(1, 10_000).default(30).meta({
      description:
        'How many days back a nightly run asks at most, however long ago the last loaded session is: the source keeps no more. Where nothing is loaded yet, it asks for tonight and the lookback only; use `eod backfill` for older days.',
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
          'Time of day before which no data of that day is expected, even if an operation declares an earlier one. An empty answer before this time does not mean that there is no data.',
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
        'How many windows one process works on at a time, for nightly runs, and as many again for backfills. The process opens twice as many database connections plus three, and a few for a queue in Postgres.',
    }),
    EOD_ATTEMPTS: whole(1, 50)
      .default(5)
      .meta({ description: 'Tries per window before it counts as failed.' }),
    EOD_BACKOFF_MS: whole(1, 600_000).default(2_000).meta({
      description:
        'Pause before the second try; it doubles with every further one. Half of each pause is random.',
    }),
    EOD_OUTAGE_PATIENCE_MS: whole(1_000, 86_400_000).default(3_600_000).meta({
      description:
        'How long a nightly run keeps trying a source that does not answer at all. A backfill, which somebody is watching, gives up after a sixtieth of this time.',
    }),
    EOD_LOCK_TIMEOUT_MS: whole(100, 3_600_000).default(120_000).meta({
      description:
        'How long a database session waits for a lock that another one holds. After that the statement fails with an error that names the holder (pid, application, user, since when), and the window is tried again later. After half of this time `/readyz` answers 503.',
    }),
    EOD_STATEMENT_TIMEOUT_MS: whole(1_000, 86_400_000).default(3_600_000).meta({
      description:
        'How long one SQL statement may take, also of a server that no longer answers; migrations are not limited.',
    }),
    EOD_SERVER_PATIENCE_MS: whole(0, 3_600_000).default(60_000).meta({
      description:
        'How long a command that starts or follows a run waits for a Postgres that cannot be reached, and `up`, when it starts, for a Postgres or Redis that is not running yet (other commands wait 10 s at most when they start); `0`: not at all. A wrong password or an unknown database is reported at once.',
    }),
    EOD_MAX_REJECT_SHARE: share.default(0.2).meta({
      description:
        'If a larger share of the records of an answer is rejected, its window fails and none of its rows are stored, so that half a day cannot look like a whole one.',
      examples: ['20%'],
    }),
    EOD_MAX_WITHDRAW_SHARE: share.default(0.1).meta({
      description:
        'Rows that a complete answer no longer lists are withdrawn. If these are a larger share of the most rows that the day ever had (and more than 5), or the last rows of a session that should have some, nothing is withdrawn and the window is `suspicious`.',
      examples: ['10%'],
    }),
    EOD_FINDING_SEVERITY: findingSeverity.default({}).meta({
      description:
        'Severity of the findings of a check, where it should differ from [data-quality.md](data-quality.md): `previous_close=error,circuit_band=off`.',
      examples: ['circuit_band=off,previous_close=error'],
    }),
    EOD_ALERT_WEBHOOK: url('http', 'https')
      .optional()
      .meta({
        description:
          'Address to which alerts are posted, as JSON with a `text` that Slack understands ([alerts.md](alerts.md)). Unset: alerts are only logged and kept in `etl.alerts`.',
        examples: ['https://hooks.example.com/services/T000/B000/xxxx'],
      }),
    EOD_ALERT_ON: alertKinds.default([...PROBLEM_KINDS]).meta({
      description:
        'The kinds of alerts that are posted, as a list; `run_completed` and `night_completed` are possible too ([alerts.md](alerts.md)).',
    }),
    EOD_ALERT_SECRET: z
      .string()
      .min(16, 'must have at least 16 characters')
      .optional()
      .meta({
        description:
          'Key with which posted alerts are signed (HMAC-SHA256), so that the receiver can verify the sender; 16 characters or more.',
        examples: ['sixteen-letters-or-more'],
      }),
    EOD_ALERT_REPEAT_HOURS: whole(1, 720)
      .default(12)
      .meta({ description: 'The same alert is not sent again for this many hours.' }),
    EOD_LATE_AFTER_MINUTES: whole(0, 1_440).default(120).meta({
      description:
        'Data that is not loaded this many minutes after its schedule should have asked for it raises the alert `late_data`.',
    }),
    EOD_HEARTBEAT_URL: url('http', 'https')
      .optional()
      .meta({
        description:
          'Address that gets a GET request after each complete night, so that a monitor (healthchecks.io, Uptime Kuma) notices when a night is not completed ([alerts.md](alerts.md)).',
        examples: ['https://hc-ping.com/00000000-0000-0000-0000-000000000000'],
      }),
    EOD_NOT_READY_WAIT_MS: whole(10, 600_000).default(3_000).meta({
      description:
        'First pause before asking again while the service is still preparing the answer; each further pause is as long as all before it together, up to a minute. These tries do not count as attempts.',
    }),
    EOD_NOT_READY_BUDGET_MS: whole(10, 86_400_000)
      .default(900_000)
      .meta({ description: 'How long to wait in total for one answer that is being prepared.' }),
    EOD_STALL_MS: whole(1_000, 600_000).default(20_000).meta({
      description: 'A window whose worker has not reported for this long is given to another worker.',
    }),
    EOD_QUEUE_PREFIX: z
      .string()
      .regex(/^[a-z][a-z0-9_]{0,30}$/, 'must be lower-case letters, digits and _')
      .default('eod')
      .meta({
        description:
          'Prefix of everything in the queue. On Redis the id of the database follows it (`eod:3f0c5a9e1b2d:…`), so that several databases can share one Redis.',
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
          'Lowest level that is logged to stderr: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`. At `info` each window has one line with the time of its steps (`ms`: claim, fetch, read, load), its rows by outcome, attempt and state; at `debug` so has each session of an imported file and each answer that is loaded again. `debug` also prints the stack of the error that ended a command. A window that ended as failed or blocked is an `error`, one that is tried again a `warn`, one whose answer is not ready yet a `debug`; each line has operation, exchange and days. A server that cannot be reached is logged once a minute.',
      }),
    EOD_LOG_FORMAT: z
      .enum(['auto', 'json', 'text'], { error: 'must be auto, json or text' })
      .default('auto')
      .meta({
        description:
          '`json`: one document a line; `text`: for people; `auto`: text where stderr is a terminal, otherwise JSON.',
      }),
    EOD_HTTP_HOST: z.string().default('127.0.0.1').meta({
      description:
        'Address `eod up` and `eod web` listen on for the [dashboard](dashboard.md), `/healthz`, `/readyz` and `/metrics`; `0.0.0.0` opens it to the network.',
    }),
    EOD_HTTP_PORT: whole(0, 65_535)
      .default(8080)
      .meta({ description: 'Port to listen on; `0` takes a free one, which `eod up` prints.' }),
    EOD_WEB_PASSWORD: z
      .string()
      .min(8, 'must have at least 8 characters')
      .optional()
      .meta({
        description:
          'Password of the dashboard, at least 8 characters. Any user name is accepted, and is logged with the actions of that user. Unset: no password is needed. `/healthz`, `/readyz` and `/metrics` never need one.',
        examples: ['a-long-password'],
      }),
    EOD_TRUSTED_PROXIES: proxies.optional().meta({
      description:
        'Addresses of proxies in front of the dashboard, or ranges such as `10.0.0.0/24`. Of requests from there, `X-Forwarded-For` says who sent them: wrong passwords are counted for, and actions logged with, the address of the visitor instead of the proxy. Unset: no such header is believed.',
      examples: ['127.0.0.1'],
    }),
    EOD_WEB_ACTIONS: flag.default(false).meta({
      description:
        'Show buttons on the dashboard that resume and cancel runs, fill gaps, retry rejects and decide events. If the dashboard can be reached from other machines (`EOD_HTTP_HOST`), `EOD_WEB_PASSWORD` must be set too, or nothing starts.',
    }),
  },
};

/**
 * Every setting. `npm run docs:generate` writes the tables of docs/configuration.md, .env.example and a JSON schema
 * from them.
 */
export const settings = {
  ...settingGroups['The source'],
  ...settingGroups['The network'],
  ...settingGroups['Where the data goes'],
  ...settingGroups['What is asked for'],
  ...settingGroups.When,
  ...settingGroups.Work,
  ...settingGroups.Watching,
};

const schema = z.object(settings);

export type Config = Readonly<z.output<typeof schema>>;

/**
 * Validates the settings in an environment from `readEnvironment`, and reads those that are given as files.
 *
 * @param folder the paths of these files are relative to it.
 * @throws PipelineError `usage` that lists all problems at once, and no value of a secret.
 */
export function loadConfig(env: Readonly<Record<string, string>>, folder = '.'): Config {
  const { values, problems } = readSecretFiles(env, folder);
  const result = schema.safeParse({ ...env, ...values });
  const wrong = (result.error?.issues ?? []).map((issue) => {
    const name = String(issue.path[0]);
    // The address of the source is no secret; wrong ones may contain a password or the key.
    const isSecret =
      (SECRET_SETTINGS as readonly string[]).includes(name) ||
      (name === 'EOD_BASE_URL' && /[@?#]/.test(env[name] ?? ''));
    const origin = name in values ? ` (it comes from ${fileSettings[name]})` : '';
    const value = isSecret ? origin : ` (it is "${env[name]}")`;
    return `  ${name} ${issue.message}${value}`;
  });
  const mistyped = unknownSettings(env).flatMap(({ name, meant }) =>
    meant === null ? [] : [`  ${name} is no setting; did you mean ${meant}?`],
  );
  const lines = [...mistyped, ...problems.map((problem) => `  ${problem}`), ...wrong];
  if (result.success && lines.length === 0) return Object.freeze(result.data);
  throw usageError(
    `the settings have ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}:\n${lines.join('\n')}`,
  );
}

/** A variable that begins with EOD_ and is no setting. */
interface UnknownSetting {
  readonly name: string;
  /** The setting that was probably meant; null where none has a similar name. */
  readonly meant: string | null;
}

/** A name that differs from a setting's in at most this many letters is probably a misspelling of it. */
const MAX_TYPOS = 2;

/** The variables of an environment that begin with EOD_ and are no settings, each with the setting it resembles. */
export function unknownSettings(env: Readonly<Record<string, string>>): UnknownSetting[] {
  const known = [...Object.keys(settings), ...Object.values(fileSettings)];
  return Object.keys(env)
    .filter((name) => name.startsWith('EOD_') && !known.includes(name))
    .map((name) => {
      // EOD_TIMEOUT resembles EOD_TIMEOUT_MS.
      const extended = known.find((one) => one.startsWith(`${name}_`) || name.startsWith(`${one}_`));
      return { name, meant: nearest(name, known, MAX_TYPOS) ?? extended ?? null };
    });
}
