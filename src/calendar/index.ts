import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, usageError } from '../core/errors.ts';
import { CODE } from '../core/package-folders.ts';
import { type LearningCalendar, learningCalendar } from './calendar.ts';
import { type Entry, readEntries } from './entries.ts';

export type { Calendar, LearningCalendar } from './calendar.ts';

const REVIEWED = ['holidays.csv', 'special-sessions.csv'];

/**
 * Loads the trading sessions of NSE and BSE (cash market): reviewed data for 2015 to 2026 (each file in `data/` names
 * its sources), Monday to Friday for other years. Any other exchange gets the sessions of NSE.
 *
 * @param options.file calendar file of the user, which overrides the reviewed data; see docs/completeness.md.
 * @throws PipelineError `usage` when that file cannot be read or has invalid lines.
 */
export function loadCalendar(options: { readonly file?: string | undefined } = {}): LearningCalendar {
  const reviewed = REVIEWED.flatMap((name) => {
    const path = join(CODE, 'calendar', 'data', name);
    return readEntries(readFileSync(path, 'utf8'), path);
  });
  return learningCalendar([reviewed, options.file === undefined ? [] : readUserFile(options.file)]);
}

function readUserFile(path: string): Entry[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw usageError(`calendar file ${path} cannot be read: ${messageOf(error)}`);
  }
  return readEntries(text, path);
}
