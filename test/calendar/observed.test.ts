import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { eachDay, isWeekend } from '../../src/core/days.ts';

const OBSERVED = resolve('../shared/data/calendar/observed_nse_sessions_2010_2026.csv');

/** Trading days that no public collection holds; the notes in `holidays.csv` say why they count all the same. */
const HOLES = ['2016-02-15', '2016-02-16', '2018-09-10', '2018-09-12', '2022-08-08'];

/** Weekend trading days are complete in the observations only from here on. */
const WEEKENDS_FROM = '2019-10-01';

if (!existsSync(OBSERVED)) console.log(`not checked against real files: ${OBSERVED} is not there`);

describe.runIf(existsSync(OBSERVED))('the calendar against the trading days observed in real files', () => {
  // The body of a group is read even when its tests are not run.
  const text = existsSync(OBSERVED) ? readFileSync(OBSERVED) : 'date';
  const rows = parse<{ date: string }>(text, { columns: true });
  const observed = rows.map((row) => row.date).filter((day) => day >= '2015-01-01');
  const last = observed.at(-1) as string;
  const calendar = loadCalendar();

  it('has every observed day as a trading day', () => {
    expect(observed.length).toBeGreaterThan(2_800);
    expect(observed.filter((day) => !calendar.isTradingDay('NSE', day))).toEqual([]);
  });

  it('has no weekday as a trading day that was not observed, but for the known holes', () => {
    const observedDays = new Set(observed);
    const weekdays = eachDay('2015-01-01', last).filter((day) => !isWeekend(day));
    expect(weekdays.filter((day) => calendar.isTradingDay('NSE', day) && !observedDays.has(day))).toEqual(
      HOLES,
    );
  });

  it('has exactly the observed weekend trading days, where those are complete', () => {
    const weekends = calendar.tradingDays('NSE', WEEKENDS_FROM, last).filter(isWeekend);
    expect(weekends).toEqual(observed.filter((day) => day >= WEEKENDS_FROM && isWeekend(day)));
  });
});
