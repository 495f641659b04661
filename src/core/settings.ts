import * as z from 'zod';
import { isDay } from './days.ts';
import {
  flag,
  integer,
  list,
  listOf,
  oneOf,
  pairs,
  plainUrl,
  proxies,
  proxy,
  setting,
  share,
  timeOfDay,
  timeZone,
  url,
} from './setting-types.ts';

/** The default of EOD_ALERT_ON: the alerts that need a person. */
const PROBLEM_KINDS = [
  'run_failed',
  'access_key',
  'source_down',
  'cannot_store',
  'late_data',
  'gaps',
  'suspicious',
] as const;

/** The kinds of alerts that EOD_ALERT_ON may name. */
const ALERT_KINDS = [...PROBLEM_KINDS, 'run_completed', 'night_completed'] as const;

/**
 * Every setting, grouped by topic: its validation, its default (or an example where it has none) and its description
 * in Markdown.
 */
export const settingGroups = {
  'The source': {
    EOD_BASE_URL: setting(
      plainUrl.optional(),
      'Address of the data service, `https://host:4532`. Commands that need the source say so when it is missing; `eod sandbox` starts a simulated one.',
      'http://127.0.0.1:8090',
    ),
    EOD_ACCESS_KEY: setting(
      z.string().optional(),
      'Your key. Secret: never logged, stored, shown or put into a job.',
      'your-key',
    ),
    EOD_TRIAL_DAY: setting(
      z.string().refine(isDay, { error: 'must be a day such as 2025-02-27' }).optional(),
      'For a trial address, which serves one day of the past for every request: that day. It is "today" for trading days and the only day that can be requested; a response about another day is refused. Unset: the address serves the days that are requested.',
      '2025-02-27',
    ),
    EOD_CALLS_PER_HOUR: setting(
      integer(1, 1_000_000).default(900),
      'Calls the key may make per clock hour, shared by all workers.',
    ),
    EOD_NIGHTLY_RESERVE: setting(
      share.default(0.3),
      'Share of those calls that backfills leave to the nightly runs. A share may also be written as a fraction: `0.3`.',
      '30%',
    ),
    EOD_TIMEOUT_MS: setting(
      integer(100, 3_600_000).default(60_000),
      'Give up on a call after this many milliseconds.',
    ),
    EOD_MAX_RESPONSE_MB: setting(
      integer(1, 1024).default(64),
      'Refuse responses larger than this, after unpacking. One whose values would take more than 60 % of the heap while it is read (not JSON with a list of records, which is read in slices) is also refused (`NODE_OPTIONS=--max-old-space-size=MB`).',
    ),
    EOD_DATE_DIALECT: setting(
      oneOf('epoch', 'iso-date').default('epoch'),
      'How ranges are requested: `epoch` (`from`/`to` in Unix seconds) or `iso-date` (`fromDate`/`toDate` as YYYY-MM-DD).',
    ),
    EOD_DATE_FORMAT: setting(
      oneOf('String', 'Epoch').default('String'),
      'Format of dates in responses: `String` or `Epoch`.',
    ),
    EOD_FORMAT: setting(
      oneOf('Json', 'Xml', 'Csv', 'CsvContent').default('Json'),
      'Format to request: `Json`, `Xml`, `Csv` or `CsvContent`. A response is read by the format it really has. JSON and CSV are by far the fastest. After a change of format, each row whose digits differ gets one revision.',
    ),
    EOD_COUNT: setting(
      oneOf('check', 'ignore').default('check'),
      'What `count` in a response means: `check`: the number of its records, so a response with fewer is requested again, and if the same comes again its days are missing (`count_mismatch`); `ignore`: something else.',
    ),
    EOD_TLS_VERIFY: setting(
      flag.default(true),
      "Verify the service's certificate. Turn this off only on a network you trust.",
    ),
  },
  'The network': {
    HTTPS_PROXY: setting(
      proxy.optional(),
      'Proxy for addresses that begin with `https://`: of the source, the webhook and the monitor. It has to allow CONNECT to their ports. Unset: `HTTP_PROXY`. Names in small letters (`https_proxy`) come first.',
      'http://proxy.example.com:3128',
    ),
    HTTP_PROXY: setting(
      proxy.optional(),
      'Proxy for addresses that begin with `http://`.',
      'http://proxy.example.com:3128',
    ),
    NO_PROXY: setting(
      z
        .string()
        .transform((text) => text.split(/[\s,]+/).filter((name) => name !== ''))
        .optional(),
      'Hosts that are called directly: names (`example.com` includes `data.example.com`), addresses, each also with a port; `*`: all. This machine itself always is. Postgres and Redis never go through a proxy.',
      '.internal,10.0.0.7',
    ),
  },
  'Where the data is stored': {
    DATABASE_URL: setting(
      url('postgres', 'postgresql').optional(),
      'Address of Postgres 15 or newer. Unset: a private Postgres is created in `EOD_DATA_DIR`; it is migrated by each command and runs only while a command does. A connection pooler must keep one session for each client (pgbouncer: `pool_mode = session`).',
      'postgres://user:password@127.0.0.1:5432/eod',
    ),
    REDIS_URL: setting(
      url('redis', 'rediss').optional(),
      'Redis for the queue. Unset: the queue is in Postgres, also if workers run on several machines.',
      'redis://127.0.0.1:6379',
    ),
    EOD_DATA_DIR: setting(
      z.string().default('.eod'),
      'Folder of the private Postgres; the demo keeps its own in `demo/` there. Unset: `.eod` of the working folder if it has a database in it; else, of an installed package, `eod-pipeline` in the folder for data of the user (`$XDG_DATA_HOME` or `~/.local/share`; on macOS `~/Library/Application Support`, on Windows `%LOCALAPPDATA%`), and of a checkout its `.eod`. `eod config` says which, and why.',
    ),
    EOD_KEEP_RUNS_DAYS: setting(
      integer(30, 100_000).default(400),
      'Days after which ended runs and what they left are deleted, except windows with kept responses. Every response and imported file is kept, compressed and each body once, for `eod replay` ([reliability.md](reliability.md)).',
    ),
  },
  'What is requested': {
    EOD_OPERATIONS: setting(
      list.default(['default']),
      'Operations to request, by name or table: `default` stands for the twelve of the specification, `-GetSeriesChange` leaves one out, and `GetBhavCopyFO` (derivatives) and `GetIndexDetail` (indices) are requested only if they are named. `eod migrate` and `eod up` store what follows from this and the next two settings, as what the database should have.',
    ),
    EOD_EXCHANGES: setting(
      listOf(z.enum(['BSE', 'NSE'], { error: 'knows BSE and NSE only' }), 'names no exchange', (text) =>
        text.toUpperCase(),
      ).default(['BSE', 'NSE']),
      'Exchanges to request, with their segments (`BFO`). Each operation is available for some of them; `--exchange` overrides the setting for one backfill.',
    ),
    EOD_OPERATION_EXCHANGES: setting(
      pairs('NAME=EXCHANGE+EXCHANGE', /^(\w+)=(\w+(?:\+\w+)*)$/, (text) => [
        ...new Set(text.toUpperCase().split('+')),
      ]).default({}),
      'Exchanges of single operations, by name or table, `NAME=EXCHANGE+EXCHANGE,…`, instead of those that they declare. Any exchange may be named.',
      'bhavcopy_cm=BSE,circuit_breakers=NSE+BSE',
    ),
    EOD_INSTRUMENTS: setting(
      list.optional(),
      'Instruments for the operations that take one instrument a request: a list, or `@file` with one name a line (`#` starts a comment).',
      'RELIANCE,TCS,M&M',
    ),
    EOD_INSTRUMENT_LIMIT: setting(
      integer(1, 100_000).default(200),
      'How many instruments to request when `EOD_INSTRUMENTS` is unset: those with the largest turnover on the newest stored day. Each of them costs two calls per night and operation.',
    ),
    EOD_WINDOW_DAYS: setting(
      pairs('NAME=days', /^(\w+)=(?=0*[1-9])(\d{1,4})$/, Number).default({}),
      'Days per request of range operations, by name or table, `NAME=days,…`; each has its own default.',
      'series_changes=90,consolidated_pledge=30',
    ),
    EOD_LOOKBACK_SESSIONS: setting(
      integer(0, 60).default(3),
      'How many trading days before the last loaded one a nightly run requests again, to get late corrections.',
    ),
    EOD_HISTORY_DAYS: setting(
      integer(1, 10_000).default(30),
      'How many days back a nightly run goes at most: the source keeps no more. Where nothing is loaded yet, it requests tonight and the lookback only.',
    ),
  },
  When: {
    EOD_TIMEZONE: setting(
      timeZone.default('Asia/Kolkata'),
      'Zone of the exchanges, of "today" and of the schedules.',
    ),
    EOD_PUBLISHED_AT: setting(
      timeOfDay.default('21:15'),
      'Time of day before which no data of that day is expected; an empty response until then means nothing.',
    ),
    EOD_NIGHT_TIMES: setting(
      listOf(timeOfDay, 'names no time').optional(),
      'When `eod up` begins the night, once or several times, instead of 21:15; `eod schedules` prints what follows. A time before 09:00 is of the night before.',
      '19:00,23:00',
    ),
    EOD_CALENDAR_FILE: setting(
      z.string().optional(),
      'CSV of trading days and holidays that corrects or extends the built-in calendar ([completeness.md](completeness.md)).',
      'holidays.csv',
    ),
  },
  Work: {
    EOD_CONCURRENCY: setting(
      integer(1, 64).default(4),
      'How many windows one process works on at a time, for nightly runs, and as many again for backfills. The process opens twice as many database connections plus three, and a few for a queue in Postgres.',
    ),
    EOD_ATTEMPTS: setting(integer(1, 50).default(5), 'Tries per window before it fails.'),
    EOD_BACKOFF_MS: setting(
      integer(1, 600_000).default(2_000),
      'Pause before the second try; it doubles with every further one. Half of each pause is random.',
    ),
    EOD_OUTAGE_PATIENCE_MS: setting(
      integer(1_000, 86_400_000).default(3_600_000),
      'How long a nightly run keeps trying a source that does not respond at all; a backfill, a sixtieth of it. After that, each further call ends one operation of the run.',
    ),
    EOD_LOCK_TIMEOUT_MS: setting(
      integer(100, 3_600_000).default(120_000),
      'How long a database session waits for a lock that another one holds. Then the statement fails, and the window is tried again later.',
    ),
    EOD_STATEMENT_TIMEOUT_MS: setting(
      integer(1_000, 86_400_000).default(3_600_000),
      'How long one SQL statement may take, also of a server that no longer responds; migrations are not limited.',
    ),
    EOD_SERVER_PATIENCE_MS: setting(
      integer(0, 3_600_000).default(60_000),
      'How long a command that works on a run waits for a Postgres that cannot be reached, and `up` for a Postgres or Redis that is not running yet (other commands wait 10 s at most). A wrong password or an unknown database is reported at once.',
    ),
    EOD_MAX_REJECT_SHARE: setting(
      share.default(0.2),
      'If a larger share of the records of a response is rejected, its window fails and none of its rows are stored.',
      '20%',
    ),
    EOD_MAX_WITHDRAW_SHARE: setting(
      share.default(0.1),
      'Rows that a complete response no longer lists are withdrawn. If these are a larger share of the most rows that the day ever had (and more than 5), or its last ones, the withdrawal is withheld and the window is `suspicious`.',
      '10%',
    ),
    EOD_FINDING_SEVERITY: setting(
      pairs(
        'check=info, warning, error or off',
        /^(\w+)=(info|warning|error|off)$/,
        (text) => text as 'info' | 'warning' | 'error' | 'off',
      ).default({}),
      'Severity of the findings of a check, where it should differ from [completeness.md](completeness.md): `previous_close=error,row_count=off`.',
      'previous_close=error,row_count=off',
    ),
    EOD_ALERT_WEBHOOK: setting(
      url('http', 'https').optional(),
      'Address to which alerts are posted, as JSON with a `text` that Slack understands ([monitoring.md](monitoring.md)). Unset: alerts are only logged and kept in `etl.alerts`.',
      'https://hooks.example.com/services/T000/B000/xxxx',
    ),
    EOD_ALERT_ON: setting(
      listOf(
        z.enum(ALERT_KINDS, { error: `knows ${ALERT_KINDS.join(', ')} only` }),
        'names no kind',
        (text) => text.toLowerCase(),
      ).default([...PROBLEM_KINDS]),
      'The kinds of alerts that are posted, as a list; `run_completed` and `night_completed` are possible too ([monitoring.md](monitoring.md)).',
    ),
    EOD_ALERT_SECRET: setting(
      z.string().min(16, 'must have at least 16 characters').optional(),
      'Key with which posted alerts are signed (HMAC-SHA256), so that the receiver can verify the sender; 16 characters or more.',
      'sixteen-letters-or-more',
    ),
    EOD_ALERT_REPEAT_HOURS: setting(
      integer(1, 720).default(12),
      'The same alert is not sent again for this many hours.',
    ),
    EOD_LATE_AFTER_MINUTES: setting(
      integer(0, 1_440).default(120),
      'Data that is not loaded this many minutes after its schedule should have requested it raises the alert `late_data`.',
    ),
    EOD_HEARTBEAT_URL: setting(
      url('http', 'https').optional(),
      'Address that gets a GET request after each complete night, so that a monitor (healthchecks.io, Uptime Kuma) notices when a night is not completed ([monitoring.md](monitoring.md)).',
      'https://hc-ping.com/00000000-0000-0000-0000-000000000000',
    ),
    EOD_NOT_READY_WAIT_MS: setting(
      integer(10, 600_000).default(3_000),
      'First pause before requesting again while the service is still preparing the response; later ones double, up to a minute. These tries are not counted as attempts.',
    ),
    EOD_NOT_READY_BUDGET_MS: setting(
      integer(10, 86_400_000).default(900_000),
      'How long to wait in total for one response that is being prepared.',
    ),
    EOD_STALL_MS: setting(
      integer(1_000, 600_000).default(20_000),
      'A window whose worker has not reported for this long is given to another worker.',
    ),
    EOD_QUEUE_PREFIX: setting(
      z
        .string()
        .regex(/^[a-z][a-z0-9_]{0,30}$/, 'must be lower-case letters, digits and _')
        .default('eod'),
      'Prefix of everything in the queue. On Redis the id of the database follows it (`eod:3f0c5a9e1b2d:…`), so that several databases can share one Redis.',
    ),
  },
  Watching: {
    EOD_LOG_LEVEL: setting(
      oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent').default('warn'),
      'Lowest level that is logged to stderr: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`. At `info` each window has one line with its times and rows. A window that ended as failed or blocked is an `error`, one that is tried again a `warn`.',
    ),
    EOD_LOG_FORMAT: setting(
      oneOf('auto', 'json', 'text').default('auto'),
      '`json`: one document a line, with `level` as a word and `time` in ISO 8601; `text`: for people; `auto`: JSON of commands that request data or serve, where stderr is no terminal; else text.',
    ),
    EOD_HTTP_HOST: setting(
      z.string().default('127.0.0.1'),
      'Address `eod up` and `eod web` listen on for the [dashboard](monitoring.md), `/healthz`, `/readyz` and `/metrics`; `0.0.0.0` opens it to the network.',
    ),
    EOD_HTTP_PORT: setting(
      integer(0, 65_535).default(8080),
      'Port to listen on; `0` takes a free one, which `eod up` prints.',
    ),
    EOD_WEB_PASSWORD: setting(
      z.string().min(8, 'must have at least 8 characters').optional(),
      'Password of the dashboard, at least 8 characters. Any user name is accepted. Unset: no password is needed. `/healthz`, `/readyz` and `/metrics` never need one.',
      'a-long-password',
    ),
    EOD_TRUSTED_PROXIES: setting(
      proxies.optional(),
      'Addresses of proxies in front of the dashboard, or ranges such as `10.0.0.0/24`. Of requests from there, `X-Forwarded-For` says who sent them. Unset: no such header is believed.',
      '127.0.0.1',
    ),
  },
};

/**
 * Every setting. `npm run docs:generate` writes the tables of docs/configuration.md, .env.example and a JSON schema
 * from them.
 */
export const settings = {
  ...settingGroups['The source'],
  ...settingGroups['The network'],
  ...settingGroups['Where the data is stored'],
  ...settingGroups['What is requested'],
  ...settingGroups.When,
  ...settingGroups.Work,
  ...settingGroups.Watching,
};
