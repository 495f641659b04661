import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

const ROOT = join(import.meta.dirname, '../..');
const FILE = join(ROOT, 'test/durations.json');

/** Writes how long each file of a run took into `test/durations.json`, and forgets files that are there no more. */
export default class DurationsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const all: Record<string, Record<string, number>> = JSON.parse(readFileSync(FILE, 'utf8'));
    for (const module of modules) {
      const { collectDuration, setupDuration, duration } = module.diagnostic();
      const seconds = (collectDuration + setupDuration + duration) / 1_000;
      const ofProject = all[module.project.name] ?? {};
      all[module.project.name] = ofProject;
      ofProject[relative(ROOT, module.moduleId).replaceAll('\\', '/')] = Math.round(seconds * 10) / 10;
    }
    const kept = Object.entries(all).map(([project, files]) => [
      project,
      Object.fromEntries(
        Object.entries(files)
          .filter(([path]) => existsSync(join(ROOT, path)))
          .sort(([a, msA], [b, msB]) => msB - msA || a.localeCompare(b)),
      ),
    ]);
    writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
  }
}
