import { type Day, daysBetween, isWeekend, weekday } from '../../core/days.ts';
import type { CoverageDay } from '../../jobs/runs/read-coverage.ts';
import { SMALL_SHAPES } from './day-kinds.tsx';
import { monthName } from './names.tsx';

/** From one day to the next: the shape, and a gap. */
const STEP = 12;

/** The column of a day's week, where the first column has the week of `first`. Weeks begin on Mondays. */
function weekColumn(first: Day, day: Day): number {
  const start = (weekday(first) + 6) % 7;
  return Math.floor((daysBetween(first, day) + start) / 7);
}

/** A year at a glance, with a column for each week and a row for each weekday. The label has the same in words. */
export function YearStrip({
  days,
  label,
}: {
  readonly days: readonly CoverageDay[];
  readonly label: string;
}) {
  const first = days[0]?.day ?? '1970-01-01';
  const weeks = weekColumn(first, days.at(-1)?.day ?? first) + 1;
  // Weekends get rows only if something is expected on one of them.
  const rows = days.some(({ day, kind }) => kind !== 'nothing' && isWeekend(day)) ? 7 : 5;
  const months = days.filter(({ day }) => day.endsWith('-01'));
  const drawCell = ({ day }: CoverageDay, shape: string) =>
    `M${weekColumn(first, day) * STEP} ${((weekday(day) + 6) % 7) * STEP}${shape}`;
  return (
    <svg class="strip" viewBox={`0 -10 ${weeks * STEP} ${rows * STEP + 10}`} role="img" aria-label={label}>
      {months.map(({ day }) => (
        <text key={day} x={weekColumn(first, day) * STEP} y={-2} class="strip-month">
          {monthName(day, 'short')}
        </text>
      ))}
      <path
        class="cell-nothing"
        d={days
          .filter(({ day, kind }) => kind === 'nothing' && !isWeekend(day))
          .map((day) => drawCell(day, SMALL_SHAPES.complete))
          .join('')}
      />
      {Object.entries(SMALL_SHAPES).map(([kind, shape]) => (
        <path
          key={kind}
          class={`cell-${kind}`}
          d={days
            .filter((day) => day.kind === kind)
            .map((day) => drawCell(day, shape))
            .join('')}
        />
      ))}
    </svg>
  );
}
