import { DAY_MS } from '../core/days.ts';
import { printable } from './sanitize.ts';
import { createDatetimeReader } from './times.ts';

/** How much of something the key may use; null: the service does not say. */
export type Allowance = number | 'unlimited' | null;

/** What the key may do, as far as the service says. */
export type Limitation = NonNullable<ReturnType<typeof parseLimitation>>;

type Members = ReadonlyMap<string, unknown>;

/** Bounds for responses of a service that is out of order. */
const MAX_ENTRIES = 1_000;
const MAX_NAME = 100;

/**
 * Reads the response of GetLimitation: one object with the members that a sibling product documents, because nobody has
 * documented those of this service. Names match in any case, and a value that cannot be read is taken as not stated.
 *
 * @returns null if the response holds none of them.
 */
export function parseLimitation(text: string, zone: string) {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return null;
  }
  const members = membersOf(json);
  const member = (name: string) => members.get(name);
  const limitation = {
    callsPerHour: allowance(member('allowedcallsperhour')),
    callsPerMonth: allowance(member('allowedcallspermonth')),
    /** In a unit that nobody has documented. */
    bandwidthPerHour: allowance(member('allowedbandwidthperhour')),
    bandwidthPerMonth: allowance(member('allowedbandwidthpermonth')),
    /** When the key expires, in ISO 8601; null if no date is stated. */
    expiresAt: moment(member('expirationdate'), zone),
    isEnabled: flag(member('enabled')),
    /** The exchanges that the key may request; null if they are not listed. */
    exchanges: listOf(member('allowedexchanges'), 'exchangename', (name, entry) => ({
      name,
      instruments: allowance(entry.get('allowedinstruments')),
    })),
    /** The operations that are listed, and whether the key may call each; null if they are not listed. */
    operations: listOf(member('allowedfunctions'), 'functionname', (name, entry) => ({
      name,
      // A list of what is allowed needs no flags.
      isEnabled: flag(entry.get('isenabled')) ?? true,
    })),
  };
  return Object.values(limitation).some((value) => value !== null) ? limitation : null;
}

/** The members of an object by their names in lower case, without what is neither letter nor digit. */
function membersOf(value: unknown): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map();
  return new Map(
    Object.entries(value).map(([name, inner]) => [name.toLowerCase().replace(/[^a-z0-9]/g, ''), inner]),
  );
}

/** The entries of a list of objects or names. */
function listOf<Entry>(
  value: unknown,
  nameOf: string,
  read: (name: string, entry: Members) => Entry,
): readonly Entry[] | null {
  if (!Array.isArray(value)) return null;
  return value.slice(0, MAX_ENTRIES).flatMap((entry: unknown) => {
    const members = membersOf(entry);
    const name = typeof entry === 'string' ? entry : members.get(nameOf);
    if (typeof name !== 'string' || name.trim() === '') return [];
    return [read(printable(name.trim().slice(0, MAX_NAME)), members)];
  });
}

function allowance(value: unknown): Allowance {
  if (typeof value === 'string' && value.trim().toLowerCase() === 'unlimited') return 'unlimited';
  const text = typeof value === 'string' ? value.trim().replaceAll(',', '') : value;
  const number = typeof text === 'number' || (typeof text === 'string' && text !== '') ? Number(text) : NaN;
  if (!Number.isFinite(number)) return null;
  return number < 0 ? 'unlimited' : number;
}

function flag(value: unknown): boolean | null {
  if (typeof value === 'boolean') return value;
  const text = String(value ?? '')
    .trim()
    .toLowerCase();
  if (['true', '1', 'yes', 'y'].includes(text)) return true;
  return ['false', '0', 'no', 'n'].includes(text) ? false : null;
}

/** A moment in seconds, milliseconds or as a text. A day without a time ends at its end. */
function moment(value: unknown, zone: string): string | null {
  const text = typeof value === 'number' ? String(Math.floor(value)) : value;
  if (typeof text !== 'string') return null;
  const read = createDatetimeReader(zone)(text);
  if (typeof read !== 'string') return null;
  const isDayAlone = /[-/]/.test(text) && !text.includes(':');
  return new Date(Date.parse(read.replace(' ', 'T')) + (isDayAlone ? DAY_MS : 0)).toISOString();
}
