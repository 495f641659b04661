import * as z from 'zod';
import { decoded, readList } from './environment.ts';
import { messageOf } from './errors.ts';

/** Describes a setting in Markdown. @param example a value for the documentation, where there is no default. */
export const setting = <Type extends z.ZodType>(type: Type, description: string, example?: string): Type =>
  type.meta({ description, ...(example === undefined ? {} : { examples: [example] }) });

/** An integer. */
export const integer = (low: number, high: number) =>
  z.coerce
    .number({ error: 'is not a number' })
    .int('must be a whole number')
    .min(low, `must be at least ${low}`)
    .max(high, `must be at most ${high}`);

/** One of several words. */
export const oneOf = <const Words extends readonly [string, ...string[]]>(...words: Words) =>
  z.enum(words, { error: `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}` });

export const flag = z
  .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
  .transform((text) => text === 'true' || text === '1');

/** A share, in percent (`30`, `30%`) or as a fraction below one (`0.3`). Its value is a fraction. */
export const share = z.string().transform((text, context) => {
  const match = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text);
  const number = match === null ? Number.NaN : Number(match[1]);
  const fraction = match?.[2] !== '%' && number < 1 ? number : number / 100;
  if (fraction >= 0 && fraction <= 1) return fraction;
  return wrong(context, 'must be a share such as 30%');
});

export const timeZone = z.string().refine(
  (name) => {
    try {
      // Postgres reads some abbreviations otherwise: IST as the time of Israel, CET without summer time.
      return (
        Boolean(new Intl.DateTimeFormat('en', { timeZone: name })) && (name.includes('/') || name === 'UTC')
      );
    } catch {
      return false;
    }
  },
  { error: 'is not the full name of a time zone, e.g. Asia/Kolkata' },
);

/** `HH:mm`. */
export const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day such as 21:15');

/** An address with one of these schemes. */
export const url = (...schemes: string[]) =>
  z.string().superRefine((text, context) => {
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase() ?? '';
    const problem = schemes.includes(scheme)
      ? problemOfAddress(text)
      : `must be an address that starts with ${schemes.map((name) => `${name}://`).join(' or ')}`;
    if (problem !== null) wrong(context, problem);
  });

/** What cannot be read in an address; null if nothing. A password with special characters is what breaks most of them. */
function problemOfAddress(text: string): string | null {
  const encode =
    'in its user name, password and path, % has to be written as %25, @ as %40, : as %3A, / as %2F, ? as %3F and # as %23';
  if (!URL.canParse(text)) return `cannot be read as the address of a server: ${encode}`;
  const { protocol, username, password, hostname, pathname } = new URL(text);
  const isWeb = protocol.startsWith('http');
  // The path of a database names it; in a web address, % may be anything.
  if ([username, password, hostname, isWeb ? '' : pathname].some((part) => decoded(part) === null)) {
    return `has a % that does not begin the code of a character: ${encode}`;
  }
  // Otherwise a password would be taken for a port and a path, and be shown with the name of the server.
  if (!isWeb && /^[^/]*\/\/[^/?#]*(\/[^?#]*|(\/[^?#]*)?\?[^=#]*|[^#]*#.*)@/.test(text)) {
    return `has an @ after /, ? or #, where no server is named: ${encode}`;
  }
  return null;
}

/** An address of nothing but a server and a path. It is shown and logged, so it must not contain secrets. */
export const plainUrl = url('http', 'https')
  .refine(
    (text) => {
      const { username, password } = new URL(text);
      return username === '' && password === '' && !/[?#]/.test(text);
    },
    {
      error:
        'must be an address without user, password, query (?) and fragment (#): set the key in EOD_ACCESS_KEY; eod adds the rest of each URL',
      when: ({ value }) => typeof value === 'string' && URL.canParse(value),
    },
  )
  .transform((text) => text.replace(/\/+$/, ''));

/** The address of a proxy, which is often written without `http://`. */
export const proxy = z
  .string()
  .transform((text) => (text.includes('://') ? text : `http://${text}`))
  .pipe(url('http', 'https'));

/** Names, which may be listed in a file. */
export const list = z.string().transform((text, context) => {
  try {
    return readList(text);
  } catch (error) {
    return wrong(context, `cannot be read: ${messageOf(error)}`);
  }
});

/** A list of these items. @param empty what is wrong with a list of none. @param spelled the text in capitals, or not. */
export const listOf = <Item extends z.ZodType<unknown, string>>(
  item: Item,
  empty: string,
  spelled = (text: string) => text,
) =>
  z
    .string()
    .transform((text) => readList(spelled(text)))
    .pipe(z.array(item).min(1, empty));

/** Addresses of proxies, also as ranges. */
export const proxies = listOf(
  z.string().refine((text) => z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]).safeParse(text).success, {
    error: 'must list addresses or ranges of addresses, such as 10.0.0.7 or 10.0.0.0/24',
  }),
  'names no address',
);

/** A list of `name=value`. @param form what such a pair looks like; `pattern` has a group for each of the two. */
export const pairs = <Value>(form: string, pattern: RegExp, read: (text: string) => Value) =>
  z.string().transform((text, context) => {
    const values: Record<string, Value> = {};
    for (const pair of readList(text)) {
      const [, name, value] = pattern.exec(pair) ?? [];
      if (name === undefined || value === undefined) return wrong(context, `"${pair}" is not ${form}`);
      values[name] = read(value);
    }
    return values;
  });

function wrong(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}
