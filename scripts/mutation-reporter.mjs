import { relative } from 'node:path';

/** One line about a mutant: `src/core/days.ts:12:3  Survived ConditionalExpression: true`. */
export function describeMutant({ fileName, location, mutatorName, replacement, status }) {
  const { line, column } = location.start;
  return `${relative('.', fileName)}:${line}:${column}  ${status} ${mutatorName}: ${replacement}`;
}

/** Prints each mutant when it was tried, because a run that takes an hour may be broken off. */
class AsTried {
  onMutantTested(mutant) {
    console.error(describeMutant(mutant));
  }
}

export const strykerPlugins = [{ kind: 'Reporter', name: 'as-tried', injectableClass: AsTried }];
