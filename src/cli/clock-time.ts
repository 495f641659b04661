import { timeAt } from '../core/days.ts';

/** `19:00 IST`: the time of day of an ISO 8601 moment, with the zone it is told in. */
export function clockTime(iso: string, timeZone: string): string {
  return `${timeAt(Date.parse(iso) / 1000, timeZone).slice(0, 5)} ${zoneName(iso, timeZone)}`;
}

/** `IST` for Asia/Kolkata. */
function zoneName(iso: string, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-IN', { timeZone, timeZoneName: 'short' }).formatToParts(
    Date.parse(iso),
  );
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? timeZone;
}
