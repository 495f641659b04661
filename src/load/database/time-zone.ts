import type pg from 'pg';
import { DAY_MS, formatOffset, zoneOffsetSeconds } from '../../core/days.ts';

/** The SQLSTATE of a name that is no time zone. */
const INVALID_PARAMETER_VALUE = '22023';

/** A year and a day, so that both changes of the clocks in a year are seen. */
const DAYS = 366;

interface TimeZoneProblem {
  readonly found: string;
  readonly remedy: string;
}

/**
 * Compares how Postgres and Node read the name of a time zone, on each day of the year before `now`. Postgres takes
 * abbreviations first, and some mean something else to it: IST is the time of Israel, and CET has no summer time. What
 * other abbreviations mean is a setting of each session, so that none is allowed.
 *
 * @returns why the name must not be used, otherwise null.
 */
export async function timeZoneProblem(
  pool: pg.Pool,
  zone: string,
  now: number,
): Promise<TimeZoneProblem | null> {
  const remedy = 'set a full name such as Asia/Kolkata';
  const days = Array.from({ length: DAYS }, (_, back) => Math.floor(now / 1000) - (back * DAY_MS) / 1000);
  let found: { readonly offsets: number[]; readonly isName: boolean };
  try {
    const { rows } = await pool.query<typeof found>(
      `select array(select extract(epoch from (to_timestamp(s) at time zone $1) - (to_timestamp(s) at time zone 'UTC'))::int
                    from unnest($2::float8[]) with ordinality as day (s, position) order by position) as offsets,
              case when position('/' in $1) > 0 then true
                else exists (select from pg_timezone_names where lower(name) = lower($1)) end as "isName"`,
      [zone, days],
    );
    found = rows[0] as typeof found;
  } catch (error) {
    if ((error as { code?: unknown }).code !== INVALID_PARAMETER_VALUE) throw error;
    return { found: `EOD_TIMEZONE=${zone}: Postgres does not know this time zone`, remedy };
  }
  for (const [at, seconds] of days.entries()) {
    const [own, theirs] = [zoneOffsetSeconds(zone, seconds), found.offsets[at] ?? 0];
    if (own === theirs) continue;
    const day = new Date(seconds * 1000).toISOString().slice(0, 10);
    return {
      found: `EOD_TIMEZONE=${zone} means another time to Postgres: UTC${formatOffset(theirs)} on ${day}, but UTC${formatOffset(own)} to this program`,
      remedy,
    };
  }
  if (found.isName) return null;
  return {
    found: `EOD_TIMEZONE=${zone} is an abbreviation, and the settings of each Postgres say what it means`,
    remedy,
  };
}
