import type { Config } from '../../core/config.ts';
import { pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { sha256 } from '../../core/sha256.ts';
import { causeOf, listText, momentText, plural } from '../../core/wording.ts';
import { BHAV_COPY } from '../../declaration/operation.ts';
import { pairTitle } from '../../operations/registry.ts';
import type { TradingDayState } from '../../state/coverage/completeness.ts';
import { gapText } from '../../state/coverage/gap-reasons.ts';
import type { SourceOutage } from '../../state/source/source-state.ts';

/** `heartbeat`: a request to EOD_HEARTBEAT_URL; `test`: sent by hand and not stored. */
type AlertKind = Config['EOD_ALERT_ON'][number] | 'heartbeat' | 'test';

/** Something that a person should know. */
export interface Alert {
  readonly kind: AlertKind;
  /** Alerts of the same kind and subject are sent once within EOD_ALERT_REPEAT_HOURS. */
  readonly subject: string;
  /** One sentence for people. */
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/**
 * The alert that the access key is refused or its monthly quota is used up. All workers and runs that the key has
 * stopped raise the same one, because the subject is the same.
 *
 * @param line the source's diagnostic line.
 */
export function keyAlert(keyHash: string, line: string): Alert {
  return {
    kind: 'access_key',
    subject: keyHash,
    message: `the source takes no more calls with this access key (${line}); what is open is paused, and each run that begins tries the key with one call`,
    facts: { diagnostic: line },
  };
}

/** The alert that the source has been down for a while; the subject is since when, so that each outage has one. */
export function outageAlert({ cause, since }: SourceOutage, timeZone: string): Alert {
  return {
    kind: 'source_down',
    subject: since,
    message: `the source does not respond since ${momentText(since, timeZone)}: ${cause}; it is tried every half minute`,
    facts: { since, cause },
  };
}

/** Most characters of a subject. */
const MAX_SUBJECT = 120;

/** A subject that is too long is cut, and gets a hash, so that others that begin alike stay others. */
export function shortSubject(subject: string): string {
  if (subject.length <= MAX_SUBJECT) return subject;
  const hash = sha256(subject).slice(0, 10);
  return `${subject.slice(0, MAX_SUBJECT - hash.length - 2)}… ${hash}`;
}

/** Kinds of alerts that are about one trading day each, and are joined to one message when they are sent. */
const TRADING_DAY_KINDS = ['late_data', 'gaps'] as const;

type TradingDayKind = (typeof TRADING_DAY_KINDS)[number];

/** The trading day of an alert. */
type AlertedDay = Pick<TradingDayState, 'operation' | 'exchange' | 'day' | 'reason' | 'detail'>;

const nameTradingDay = (tradingDay: AlertedDay) => `${pairName(tradingDay)} ${tradingDay.day}`;

/** Why a trading day is missing, in words. */
const whyMissing = (tradingDay: AlertedDay) =>
  tradingDay.reason === null ? 'missing' : gapText({ ...tradingDay, reason: tradingDay.reason });

/** Trading days in words, a part for each cause: `Prices, bhavcopy_cm NSE 2025-09-12 (not requested yet)`. */
function tradingDaysText(tradingDays: readonly AlertedDay[]): string {
  const groups = groupBy(tradingDays, (tradingDay) => causeOf(whyMissing(tradingDay)));
  return listText(
    [...groups.values()].map((group) => {
      const dataSets = [...groupBy(group, pairName).values()].map(dataSetText);
      return `${listText(dataSets, ', ')} (${exampleText(group.map(whyMissing))})`;
    }),
  );
}

/** Trading days of one data set: `Prices, bhavcopy_cm NSE 2025-09-10 to 2025-09-12 (3 trading days)`. */
function dataSetText(tradingDays: readonly AlertedDay[]): string {
  const days = tradingDays.map(({ day }) => day).sort();
  const [from = '', to = from] = [days[0], days.at(-1)];
  const range = from === to ? from : `${from} to ${to} (${plural(days.length, 'trading day')})`;
  return `${tradingDays.slice(0, 1).map(pairTitle)} ${range}`;
}

/** The first of some reasons of one cause, as an example where they differ. */
export function exampleText(reasons: readonly string[]): string {
  const [first = ''] = reasons;
  return new Set(reasons).size === 1 ? first : `for example, ${first}`;
}

/** @param facts what else is known: `run` after which it is missing, or `workers` that were seen within the last minute. */
export function tradingDayAlert(
  kind: TradingDayKind,
  { operation, exchange, day, reason, detail }: AlertedDay,
  facts: { readonly run?: number; readonly workers?: number },
): Alert {
  const tradingDay = { operation, exchange, day, reason, detail };
  return {
    kind,
    subject: nameTradingDay(tradingDay),
    message: writeMessage(kind, [tradingDay], facts.workers),
    facts: { ...facts, sessions: [tradingDay] },
  };
}

function writeMessage(kind: TradingDayKind, missing: readonly AlertedDay[], workers?: number): string {
  const tradingDays = missing.toSorted(
    (a, b) => Number(b.operation === BHAV_COPY) - Number(a.operation === BHAV_COPY),
  );
  const dataSets = new Set(tradingDays.map(({ operation }) => operation)).size;
  const subject = `${plural(tradingDays.length, 'trading day')}${dataSets > 1 ? ` of ${dataSets} data sets` : ''}`;
  const verb = tradingDays.length === 1 ? 'is' : 'are';
  if (kind === 'gaps') return `${subject} ${verb} missing after the night: ${tradingDaysText(tradingDays)}`;
  const isNeverRequested = tradingDays.every(({ reason }) => reason === 'not_requested');
  const hints = [
    ...(isNeverRequested ? ['check that a scheduler and a worker are running'] : []),
    ...(workers === 0 ? ['no worker was seen within the last minute'] : []),
  ];
  return `${subject} ${verb} missing although due: ${[tradingDaysText(tradingDays), ...hints].join('; ')}`;
}

/** An alert whose kind may be any, as the database has it. */
export type StoredAlert = Omit<Alert, 'kind'> & { readonly kind: string };

const isTradingDayKind = (kind: string): kind is TradingDayKind =>
  TRADING_DAY_KINDS.some((tradingDayKind) => tradingDayKind === kind);

/** The trading days that an alert names; null if it is about something else. */
const listTradingDays = ({ kind, facts }: StoredAlert): readonly AlertedDay[] | null =>
  isTradingDayKind(kind) && Array.isArray(facts.sessions) ? facts.sessions : null;

/** Kinds of alerts of one run that are one post: what failed, and what is missing because of it. */
const RUN_KINDS: readonly string[] = ['run_failed', ...TRADING_DAY_KINDS];

/** What is sent as one post: the trading days of a kind; of a run, what failed with the trading days that it left. */
function choosePost<One extends StoredAlert>(alert: One): One | string {
  if (alert.kind !== 'run_failed' && listTradingDays(alert) === null) return alert;
  const { kind, facts } = alert;
  return typeof facts.run === 'number' ? `run ${facts.run}` : kind;
}

/** Joins alerts that are one post; the others stay as they are (pure). */
export function joinAlerts<One extends StoredAlert>(
  alerts: readonly One[],
): (One & { readonly of: readonly One[] })[] {
  const groups = groupBy(alerts, choosePost);
  return [...groups.values()].flatMap((group) => {
    const rank = ({ kind }: One) => RUN_KINDS.indexOf(kind);
    const of = group.toSorted((a, b) => rank(a) - rank(b));
    const [first] = of;
    if (first === undefined) return [];
    if (of.length === 1) return [{ ...first, of }];
    // A trading day that is late is a gap of its run as well.
    const listedDays = of.flatMap((alert) => listTradingDays(alert) ?? []);
    const tradingDays = [
      ...new Map(listedDays.map((tradingDay) => [nameTradingDay(tradingDay), tradingDay])).values(),
    ];
    const { workers } = first.facts;
    const kind = isTradingDayKind(first.kind) ? first.kind : 'gaps';
    const missing = writeMessage(kind, tradingDays, typeof workers === 'number' ? workers : undefined);
    return [
      {
        ...first,
        subject: isTradingDayKind(first.kind) ? tradingDays.map(nameTradingDay).join(', ') : first.subject,
        message: isTradingDayKind(first.kind) ? missing : `${first.message}; ${missing}`,
        facts: { ...first.facts, sessions: tradingDays },
        of,
      },
    ];
  });
}

/** Most bytes of a post, and most characters of its message, which it has twice. */
const MAX_BYTES = 2_048;
const MAX_MESSAGE = 500;

/**
 * The body of a post (pure): `text` for Slack, in which nothing of it is a mention, the other members for programs. A
 * message that is too long is cut, and lists are shortened, with how many items they had.
 */
export function buildBody<One extends Omit<Alert, 'kind'>>(alert: One) {
  const written = (characters: number, facts: Alert['facts']) => {
    const message =
      alert.message.length > characters ? `${alert.message.slice(0, characters - 1)}…` : alert.message;
    const text = message.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    return { text: `eod: ${text}`, ...alert, subject: shortSubject(alert.subject), message, facts };
  };
  const fits = (body: object) => Buffer.byteLength(JSON.stringify(body)) <= MAX_BYTES;
  for (let items = 16; items >= 1; items /= 2) {
    const body = written(MAX_MESSAGE, shortenLists(alert.facts, items));
    if (fits(body)) return body;
  }
  let characters = MAX_MESSAGE;
  while (characters > 1 && !fits(written(characters, {}))) characters = Math.floor(characters / 2);
  return written(characters, {});
}

/** Facts with at most so many items of each list, and its length where some are left out. */
const shortenLists = (facts: Alert['facts'], items: number): Alert['facts'] =>
  Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]): [string, unknown][] =>
      Array.isArray(value) && value.length > items
        ? [
            [name, value.slice(0, items)],
            [`${name}Total`, value.length],
          ]
        : [[name, value]],
    ),
  );
