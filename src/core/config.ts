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

/**
 * Every setting, its default and its check; `.env.example` and `docs/configuration.md` follow it,
 * and a test keeps them in step.
 */
export const settings = {
  EOD_BASE_URL: url('http', 'https')
    .transform((text) => text.replace(/\/+$/, ''))
    .optional(),
  EOD_ACCESS_KEY: z.string().optional(),
  DATABASE_URL: url('postgres', 'postgresql').optional(),
  REDIS_URL: url('redis', 'rediss').optional(),
  EOD_DATA_DIR: z.string().default('.eod'),
  EOD_EXCHANGES: exchanges.default(['BSE', 'NSE']),
  EOD_INSTRUMENTS: list.optional(),
  EOD_INSTRUMENT_LIMIT: whole(1, 100_000).default(200),
  EOD_DATE_DIALECT: z.enum(['epoch', 'iso-date'], { error: 'must be epoch or iso-date' }).default('epoch'),
  EOD_DATE_FORMAT: z.enum(['String', 'Epoch'], { error: 'must be String or Epoch' }).default('String'),
  EOD_FORMAT: z
    .enum(['Json', 'Xml', 'Csv', 'CsvContent'], { error: 'must be Json, Xml, Csv or CsvContent' })
    .default('Json'),
  EOD_TIMEZONE: zone.default('Asia/Kolkata'),
  EOD_PUBLISHED_AT: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day such as 21:15')
    .default('21:15'),
  EOD_CONCURRENCY: whole(1, 64).default(4),
  EOD_CALLS_PER_HOUR: whole(1, 1_000_000).default(900),
  EOD_NIGHTLY_RESERVE: share.default(0.3),
  EOD_TIMEOUT_MS: whole(100, 3_600_000).default(60_000),
  EOD_MAX_RESPONSE_MB: whole(1, 1024).default(64),
  EOD_ATTEMPTS: whole(1, 50).default(5),
  EOD_BACKOFF_MS: whole(1, 600_000).default(2_000),
  EOD_NOT_READY_WAIT_MS: whole(10, 600_000).default(3_000),
  EOD_NOT_READY_BUDGET_MS: whole(10, 86_400_000).default(900_000),
  EOD_LOCK_TIMEOUT_MS: whole(100, 3_600_000).default(120_000),
  EOD_STATEMENT_TIMEOUT_MS: whole(1_000, 86_400_000).default(3_600_000),
  EOD_SERVER_PATIENCE_MS: whole(0, 3_600_000).default(60_000),
  EOD_OUTAGE_PATIENCE_MS: whole(1_000, 86_400_000).default(3_600_000),
  EOD_MAX_REJECT_SHARE: share.default(0.2),
  EOD_MAX_WITHDRAW_SHARE: share.default(0.1),
  EOD_KEEP_RAW: flag.default(true),
  EOD_KEEP_RAW_DAYS: whole(1, 100_000).optional(),
  EOD_FINDING_SEVERITY: findingSeverity.default({}),
  EOD_ALERT_WEBHOOK: url('http', 'https').optional(),
  EOD_ALERT_ON: alertKinds.default([...PROBLEM_KINDS]),
  EOD_ALERT_SECRET: z.string().min(16, 'must have at least 16 characters').optional(),
  EOD_ALERT_REPEAT_HOURS: whole(1, 720).default(12),
  EOD_LATE_AFTER_MINUTES: whole(0, 1_440).default(120),
  EOD_HEARTBEAT_URL: url('http', 'https').optional(),
  EOD_STALL_MS: whole(1_000, 600_000).default(20_000),
  EOD_LOOKBACK_SESSIONS: whole(0, 60).default(3),
  EOD_HISTORY_DAYS: whole(1, 10_000).default(30),
  EOD_WINDOW_DAYS: windowDays.default({}),
  EOD_QUEUE_PREFIX: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,30}$/, 'must be lower-case letters, digits and _')
    .default('eod'),
  EOD_CALENDAR_FILE: z.string().optional(),
  EOD_LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'must be fatal, error, warn, info, debug, trace or silent',
    })
    .default('warn'),
  EOD_LOG_FORMAT: z.enum(['auto', 'json', 'text'], { error: 'must be auto, json or text' }).default('auto'),
  EOD_HTTP_HOST: z.string().default('127.0.0.1'),
  EOD_HTTP_PORT: whole(0, 65_535).default(8080),
  EOD_WEB_ACTIONS: flag.default(false),
  EOD_WEB_PASSWORD: z.string().min(8, 'must have at least 8 characters').optional(),
  EOD_TLS_VERIFY: flag.default(true),
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
