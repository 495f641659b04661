import { scaleLinear } from 'd3-scale';
import { addDays, type Day, type DayRange, daysBetween } from '../../core/days.ts';
import { largest } from '../../core/iterables.ts';
import { MONTHS } from './session-calendar.tsx';

interface Point {
  readonly day: Day;
  readonly value: number;
}

interface ChartProps extends DayRange {
  /** What it shows, in words, for screen readers. */
  readonly label: string;
  readonly points: readonly Point[];
  /** Dots for single events, a line for values that follow each other. */
  readonly kind: 'dots' | 'line';
  /** Formats a value of the axis. */
  readonly format: (value: number) => string;
  /** A value for comparison, drawn as a dashed line. */
  readonly usual?: number | null;
}

const HEIGHT = 120;
const TOP = 16;
const BOTTOM = 100;
/** Percent of the width that is reserved for the numbers of the axis. */
const AXIS = 9;
/** Points further apart than this many days are not connected. */
const JOINED_DAYS = 10;

/** Draws values over days. Horizontal positions are percentages, so that the chart fills the width there is. */
export function TimeChart({ label, from, to, points, kind, format, usual = null }: ChartProps) {
  const most = largest(
    points.map(({ value }) => value),
    Math.max(1, usual ?? 0),
  );
  const y = scaleLinear([0, most], [BOTTOM, TOP]).nice(3);
  const x = scaleLinear([0, Math.max(1, daysBetween(from, to))], [AXIS, 99.5]);
  const place = (day: Day) => x(daysBetween(from, day));
  const path = (of: readonly Point[]) =>
    `M${of.map(({ day, value }) => `${place(day)},${y(value)}`).join('L')}`;
  return (
    <svg class="chart" role="img" aria-label={label} height={HEIGHT}>
      {y
        .ticks(3)
        .filter(Number.isInteger)
        .map((tick) => (
          <g key={tick}>
            <line x1="0" x2="100%" y1={y(tick)} y2={y(tick)} class="grid" />
            <text x="0" y={y(tick) - 3} class="axis">
              {format(tick)}
            </text>
          </g>
        ))}
      {ticksOf(from, to).map((day) => (
        <text key={day} x={`${place(day)}%`} y={HEIGHT - 4} class="axis axis-day">
          {day.slice(5) === '01-01' ? day.slice(0, 4) : dayName(day)}
        </text>
      ))}
      {usual === null ? null : <line x1="0" x2="100%" y1={y(usual)} y2={y(usual)} class="usual" />}
      {kind === 'line' ? (
        <svg
          viewBox={`0 0 100 ${HEIGHT}`}
          width="100%"
          height={HEIGHT}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          {connected(points).map((piece) => (
            <path key={piece[0]?.day} d={path(piece) ?? ''} class="series" />
          ))}
        </svg>
      ) : null}
      {kind === 'dots' || points.length < 40
        ? points.map(({ day, value }) => (
            <circle key={day} cx={`${place(day).toFixed(2)}%`} cy={y(value).toFixed(1)} r="2.5" class="dot" />
          ))
        : null}
    </svg>
  );
}

const monthName = (day: Day) => MONTHS[Number(day.slice(5, 7)) - 1]?.slice(0, 3);

const dayName = (day: Day) =>
  day.endsWith('-01') ? monthName(day) : `${Number(day.slice(8))} ${monthName(day)}`;

/**
 * The days on the axis: in a long range the first days of months or of every third month, in a shorter one a day every
 * week or two.
 */
function ticksOf(from: Day, to: Day): Day[] {
  const days = daysBetween(from, to);
  if (days < 60) {
    const step = days < 20 ? 5 : 14;
    return Array.from({ length: Math.floor(days / step) + 1 }, (_, at) => addDays(from, at * step)).slice(
      0,
      -1,
    );
  }
  const all = Array.from({ length: days + 1 }, (_, at) => addDays(from, at)).filter((day) =>
    day.endsWith('-01'),
  );
  return days < 150 ? all : all.filter((_, at) => at % 3 === 0);
}

/** Splits points into groups that are close enough to be connected. */
function connected(points: readonly Point[]): Point[][] {
  const found: Point[][] = [];
  for (const point of points) {
    const last = found.at(-1);
    const before = last?.at(-1);
    if (last !== undefined && before !== undefined && daysBetween(before.day, point.day) <= JOINED_DAYS) {
      last.push(point);
    } else {
      found.push([point]);
    }
  }
  return found;
}
