import { dayAt, timeAt } from '../core/days.ts';
import type { Context } from '../jobs/context.ts';
import { type Forecast, forecastRun, type OperationForecast } from '../jobs/runs/forecast.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { type Column, plural, print, printJson, table } from './output.ts';

const COLUMNS: readonly Column<OperationForecast>[] = [
  { head: 'operation', cell: (row) => row.operation },
  { head: 'exchange', cell: (row) => row.exchange },
  { head: 'windows', cell: (row) => row.windows },
  { head: 'requests', cell: (row) => row.requests },
  { head: 'skipped', cell: (row) => row.skipped },
  { head: 'out of reach', cell: (row) => row.outOfReach },
  { head: '', cell: (row) => (row.estimated ? 'planned once the bhav copy is in' : '') },
];

/** Says what a run would ask, without starting it. */
export async function printForecast(
  context: Context,
  request: RunRequest,
  flags: { readonly json?: boolean },
): Promise<void> {
  const forecast = await forecastRun(context, request);
  if (flags.json === true) printJson(forecast);
  else print(forecastText(forecast, context.config.EOD_TIMEZONE));
}

/** What a backfill would ask and when it would be done, for people. */
function forecastText(forecast: Forecast, timeZone: string): string {
  const total = { ...forecast, operation: 'total', exchange: '', estimated: false };
  const about = forecast.estimated ? 'about ' : '';
  return [
    table(COLUMNS, [...forecast.operations, total]),
    '',
    `${forecast.from} to ${forecast.to}: ${about}${plural(forecast.requests, 'request')}; nothing was asked`,
    `a backfill may make ${forecast.callsPerHour} calls an hour, ${forecast.leftThisHour} more in this one: ${whenText(forecast, timeZone)}`,
    ...(forecast.outOfReach === 0
      ? []
      : [
          `${plural(forecast.outOfReach, 'window')} begin before ${forecast.reachesBackTo}, how far back the source is expected to reach (EOD_HISTORY_DAYS)`,
        ]),
  ].join('\n');
}

function whenText({ hours, finishAt }: Forecast, timeZone: string): string {
  if (hours === null || finishAt === null) return 'it would never end, all calls are kept for the night';
  const seconds = Math.floor(Date.parse(finishAt) / 1000);
  const when = `${dayAt(seconds, timeZone)} ${timeAt(seconds, timeZone).slice(0, 5)}`;
  return hours === 0
    ? 'nothing to do'
    : `done in ${plural(hours, 'clock hour')}, about ${when} (${timeZone})`;
}
