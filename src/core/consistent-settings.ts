import { systemClock } from './clock.ts';
import type { Config } from './config.ts';
import { zoneOffsetSeconds } from './days.ts';
import { readMember } from './errors.ts';

/** The offset of Asia/Kolkata, +05:30: days, and the hours of the quota, begin at other times than in UTC. */
const INDIA_OFFSET_S = 19_800;

/** Whether an address, or the name in a Host header, means only this machine. */
export function isLoopback(host: string): boolean {
  return /^(localhost|.+\.localhost|\[?::1\]?|127(\.\d{1,3}){3})$/i.test(host);
}

/** Whether everybody on the network can read the dashboard. */
export const isOpenToNetwork = (config: Pick<Config, 'EOD_HTTP_HOST' | 'EOD_WEB_PASSWORD'>): boolean =>
  !isLoopback(config.EOD_HTTP_HOST) && config.EOD_WEB_PASSWORD === undefined;

/** A contradiction between settings, and what to do about it. */
interface Contradiction {
  /** In the rules, `{NAME}` stands for the value of a setting. */
  readonly problem: string;
  readonly remedy: string;
}

/** A rule that holds unless some settings contradict each other, though each is valid. */
const consistent = (holds: (config: Config) => boolean, problem: string, remedy: string) => ({
  holds,
  problem,
  remedy,
});

/** The host that an address with http:// names; null for any other address. */
function hostInClear(address = 'https://localhost'): string | null {
  const { protocol, hostname } = new URL(address);
  return protocol === 'http:' ? hostname : null;
}

const encrypted = (
  name: 'EOD_BASE_URL' | 'EOD_ALERT_WEBHOOK' | 'EOD_HEARTBEAT_URL',
  exposure: string,
  server: string,
) =>
  consistent(
    (config) => isLoopback(hostInClear(config[name]) ?? 'localhost'),
    `${name} begins with http://: ${exposure} in clear text`,
    `use https:// where the ${server} offers it`,
  );

const SECRET_ADDRESS = 'its address, which is a secret, travels';

const RULES = [
  encrypted('EOD_BASE_URL', 'the access key travels', 'service'),
  consistent(
    ({ EOD_BASE_URL: url, EOD_TLS_VERIFY }) =>
      EOD_TLS_VERIFY || url === undefined || hostInClear(url) !== null,
    'EOD_TLS_VERIFY=false: anybody between here and the source can impersonate it and read the access key',
    'remove EOD_TLS_VERIFY, or set it to true',
  ),
  consistent(
    (config) => !isOpenToNetwork(config),
    'EOD_HTTP_HOST={EOD_HTTP_HOST} and no EOD_WEB_PASSWORD: anyone who can reach the dashboard served from here can read it',
    'set EOD_WEB_PASSWORD where the role web runs',
  ),
  encrypted('EOD_ALERT_WEBHOOK', SECRET_ADDRESS, 'receiver'),
  encrypted('EOD_HEARTBEAT_URL', SECRET_ADDRESS, 'receiver'),
  consistent(
    (config) => config.REDIS_URL === undefined || config.DATABASE_URL !== undefined,
    'REDIS_URL is set and DATABASE_URL is not: workers on other machines cannot reach the private Postgres',
    'set DATABASE_URL to a server that all machines reach, or remove REDIS_URL',
  ),
  consistent(
    (config) => config.EOD_NIGHTLY_RESERVE < 1,
    'EOD_NIGHTLY_RESERVE=100% keeps all calls for the nights: a backfill can never make one',
    'set it to less, e.g. 30%',
  ),
  consistent(
    (config) => config.EOD_LOCK_TIMEOUT_MS < config.EOD_STATEMENT_TIMEOUT_MS,
    'EOD_STATEMENT_TIMEOUT_MS ({EOD_STATEMENT_TIMEOUT_MS}) ends a statement before EOD_LOCK_TIMEOUT_MS ({EOD_LOCK_TIMEOUT_MS}) can end its wait for a lock',
    'set EOD_STATEMENT_TIMEOUT_MS to several times EOD_LOCK_TIMEOUT_MS',
  ),
  consistent(
    (config) => config.EOD_PUBLISHED_AT > '15:30',
    'EOD_PUBLISHED_AT={EOD_PUBLISHED_AT} is before the exchanges close at 15:30: an empty response is taken as a day without data, though the day is not published yet',
    'set it to the time from which the source has the day, e.g. 21:15',
  ),
  consistent(
    ({ EOD_NIGHT_TIMES: times, EOD_PUBLISHED_AT }) =>
      times === undefined || times.some((time) => time >= EOD_PUBLISHED_AT || time < '09:00'),
    'EOD_NIGHT_TIMES={EOD_NIGHT_TIMES} has no time after EOD_PUBLISHED_AT ({EOD_PUBLISHED_AT}): a night that comes before its data is not repeated when it is there',
    'add a later time, or set EOD_PUBLISHED_AT to the time from which the source has the day',
  ),
  consistent(
    (config) =>
      zoneOffsetSeconds(config.EOD_TIMEZONE, Math.floor(systemClock.now() / 1000)) === INDIA_OFFSET_S,
    'EOD_TIMEZONE={EOD_TIMEZONE} is not the zone of the exchanges: days, schedules and the hours of the quota begin at the wrong times',
    'remove EOD_TIMEZONE, or set it to Asia/Kolkata',
  ),
];

/** The contradictions between settings that are valid one by one. */
export function contradictions(config: Config): Contradiction[] {
  return RULES.flatMap(({ holds, problem, remedy }) => {
    const sentence = problem.replace(/\{(\w+)\}/g, (_, name) => String(readMember(config, name)));
    return holds(config) ? [] : [{ problem: sentence, remedy }];
  });
}
