import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const ROOT = join(import.meta.dirname, '../..');

/** Seconds of each file by project, as `npm run test:durations` wrote them. */
const DURATIONS: Record<string, Record<string, number>> = JSON.parse(
  readFileSync(join(ROOT, 'test/durations.json'), 'utf8'),
);

/** Seconds that a file took; one that nobody has measured counts as long, so that it does not end alone. */
export function durationOf(project: string, file: string): number {
  const path = relative(ROOT, file).replaceAll('\\', '/');
  return DURATIONS[project]?.[path] ?? Number.POSITIVE_INFINITY;
}

/**
 * Starts the longest files first, so that no long file is left for the end, when the other workers have nothing to do.
 * Files of one project stay together: a worker that gets one of another project starts anew, with all modules.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const longest = new Map<string, number>();
    const measured = files.map((file) => {
      const { name } = file.project;
      const seconds = durationOf(name, file.moduleId);
      if (Number.isFinite(seconds)) longest.set(name, Math.max(longest.get(name) ?? 0, seconds));
      return { file, name, seconds };
    });
    const ofProject = (name: string) => longest.get(name) ?? 0;
    return measured
      .sort(
        (a, b) =>
          ofProject(b.name) - ofProject(a.name) ||
          a.name.localeCompare(b.name) ||
          (a.seconds === b.seconds ? a.file.moduleId.localeCompare(b.file.moduleId) : b.seconds - a.seconds),
      )
      .map(({ file }) => file);
  }
}
