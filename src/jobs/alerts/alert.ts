import type { Config } from '../../core/config.ts';
import { pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import type { SessionState } from '../../load/state/coverage/completeness.ts';
import { gapText } from '../../load/state/coverage/gap-reasons.ts';
import { pairTitle } from '../../operations/registry.ts';

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
    message: `the source takes no more calls with this access key (${line}); no call is made until you run a command again`,
    facts: { diagnostic: line },
  };
}

/** At most this many items are listed in a message; the facts of the alert contain all. */
const MAX_LISTED = 5;

/** The first items as a text, with the number of the others. */
export function listText(items: readonly string[]): string {
  const more = items.length - MAX_LISTED;
  return items.slice(0, MAX_LISTED).join('; ') + (more > 0 ? `; and ${more} more` : '');
}

/** Kinds of alerts that are about one session each, and are joined to one message when they are sent. */
const SESSION_KINDS = ['late_data', 'gaps'] as const;

type SessionKind = (typeof SESSION_KINDS)[number];

/** The session of an alert. */
type AlertedSession = Pick<SessionState, 'operation' | 'exchange' | 'day' | 'reason' | 'detail'>;

const nameOf = (session: AlertedSession) => `${pairName(session)} ${session.day}`;

/** A session in words: `Prices, bhavcopy_cm NSE 2025-09-12 (not requested yet)`. */
const textOf = (session: AlertedSession) =>
  `${pairTitle(session)} ${session.day} (${session.reason === null ? 'missing' : gapText({ ...session, reason: session.reason })})`;

/** @param facts what else is known: `run` after which it is missing, or `workers` that were seen within the last minute. */
export function sessionAlert(
  kind: SessionKind,
  { operation, exchange, day, reason, detail }: AlertedSession,
  facts: { readonly run?: number; readonly workers?: number },
): Alert {
  const session = { operation, exchange, day, reason, detail };
  return {
    kind,
    subject: nameOf(session),
    message: messageOf(kind, [session], facts.workers),
    facts: { ...facts, sessions: [session] },
  };
}

function messageOf(kind: SessionKind, sessions: readonly AlertedSession[], workers?: number): string {
  const listed = listText(sessions.map(textOf));
  if (kind === 'gaps') return `sessions are missing after the night: ${listed}`;
  const notRequested = sessions.every(({ reason }) => reason === 'not_requested');
  const hints = [
    ...(notRequested
      ? ['it has not been requested yet: check that a scheduler and a worker are running']
      : []),
    ...(workers === 0 ? ['no worker was seen within the last minute'] : []),
  ];
  return `data is missing although it was due: ${[listed, ...hints].join('; ')}`;
}

type Joined = Pick<Alert, 'subject' | 'message' | 'facts'> & { readonly kind: string };

const isSessionKind = (kind: string): kind is SessionKind => SESSION_KINDS.some((one) => one === kind);

/** The sessions that an alert names; null if it is about something else. */
export const sessionsOf = ({ kind, facts }: Joined): readonly AlertedSession[] | null =>
  isSessionKind(kind) && Array.isArray(facts.sessions) ? facts.sessions : null;

/** An alert about a session with what is known of it now, and how many workers are seen now; others stay as they are (pure). */
export function asOfNow<One extends Joined>(alert: One, session: AlertedSession, workers: number): One {
  if (!isSessionKind(alert.kind)) return alert;
  const facts = { ...alert.facts, ...(alert.facts.workers === undefined ? {} : { workers }) };
  return { ...alert, ...sessionAlert(alert.kind, session, facts), kind: alert.kind };
}

/** Joins alerts about single sessions to one of each kind; the others stay as they are (pure). */
export function joinAlerts<One extends Joined>(
  alerts: readonly One[],
): (One & { readonly of: readonly One[] })[] {
  const groups = groupBy(alerts, (alert) => (sessionsOf(alert) === null ? alert : alert.kind));
  return [...groups.values()].flatMap((of) => {
    const [first] = of;
    if (first === undefined) return [];
    if (!isSessionKind(first.kind) || of.length === 1) return [{ ...first, of }];
    const sessions = of.flatMap((alert) => sessionsOf(alert) ?? []);
    const { workers } = first.facts as { readonly workers?: number };
    return [
      {
        ...first,
        subject: of.map(({ subject }) => subject).join(', '),
        message: messageOf(first.kind, sessions, workers),
        facts: { ...first.facts, sessions },
        of,
      },
    ];
  });
}
