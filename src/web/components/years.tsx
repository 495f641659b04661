/** Links to the years of a page. */
export function Years({
  path,
  years,
  chosen,
}: {
  readonly path: string;
  readonly years: readonly number[];
  readonly chosen: number;
}) {
  return (
    <nav class="years" aria-label="Years">
      <ul>
        {years.map((year) => (
          <li key={year}>
            <a href={`${path}?year=${year}`} aria-current={year === chosen ? 'true' : undefined}>
              {year}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
