import { scaleLinear } from 'd3-scale';
import { addDays, type Day, daysBetween } from '../../core/days.ts';
import { largest } from '../../core/iterables.ts';
import { monthName } from './names.tsx';

interface Point {
  readonly day: Day;
  readonly value: number;
}

interface ChartProps {
  /** What it shows, in words, for screen readers. */
  readonly label: string;
  /** In the order of their days, of which there is at least one. */
  readonly points: readonly Point[];
  /** Other values of the same days, drawn as a thin line behind. */
  readonly behind?: readonly Point[];
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

/**
 * Draws values over the days from the first to the last. Horizontal positions are percentages, so that the chart fills
 * the width there is.
 */
export function TimeChart({ label, points, behind = [], kind, format, usual = null }: ChartProps) {
  const from = points[0]?.day ?? '1970-01-01';
  const to = points.at(-1)?.day ?? from;
  const most = largest(
    [...points, ...behind].map(({ value }) => value),
    Math.max(1, usual ?? 0),
  );
  const y = scaleLinear([0, most], [BOTTOM, TOP]).nice(3);
  const x = scaleLinear([0, Math.max(1, daysBetween(from, to))], [AXIS, 99.5]);
  const placeDay = (day: Day) => x(daysBetween(from, day));
  const path = (of: readonly Point[]) =>
    `M${of.map(({ day, value }) => `${placeDay(day)},${y(value)}`).join('L')}`;
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
      {listTicks(from, to).map((day) => (
        <text key={day} x={`${placeDay(day)}%`} y={HEIGHT - 4} class="axis axis-day">
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
          {[behind, points].flatMap((line) =>
            connected(line).map((piece) => (
              <path key={piece[0]?.day} d={path(piece)} class={line === behind ? 'behind' : 'series'} />
            )),
          )}
        </svg>
      ) : null}
      {kind === 'dots' || points.length < 40
        ? points.map(({ day, value }) => (
            <circle
              key={day}
              cx={`${placeDay(day).toFixed(2)}%`}
              cy={y(value).toFixed(1)}
              r="2.5"
              class="dot"
            />
          ))
        : null}
    </svg>
  );
}

const dayName = (day: Day) =>
  day.endsWith('-01') ? monthName(day, 'short') : `${Number(day.slice(8))} ${monthName(day, 'short')}`;

/**
 * The days on the axis: in a long range the first days of months or of every third month, in a shorter one a day every
 * week or two; none so near to the end that its name would be cut off.
 */
function listTicks(from: Day, to: Day): Day[] {
  const length = daysBetween(from, to);
  const days = Array.from({ length: Math.ceil(length * 0.92) + (length === 0 ? 1 : 0) }, (_, at) =>
    addDays(from, at),
  );
  if (length < 60) return days.filter((_, at) => at % (length < 20 ? 5 : 14) === 0);
  const months = days.filter((day) => day.endsWith('-01'));
  return length < 150 ? months : months.filter((_, at) => at % 3 === 0);
}

/** Splits points into groups that are close enough to be connected. */
function connected(points: readonly Point[]): Point[][] {
  const lines: Point[][] = [];
  for (const point of points) {
    const last = lines.at(-1);
    const before = last?.at(-1);
    if (last !== undefined && before !== undefined && daysBetween(before.day, point.day) <= JOINED_DAYS) {
      last.push(point);
    } else {
      lines.push([point]);
    }
  }
  return lines;
}
