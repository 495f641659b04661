import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual, parseEnv } from 'node:util';
import { replaceSettingsFile } from '../../core/environment.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import type { SettingChange } from './verdict.ts';

/** A line that is replaced or, without `before`, added. */
interface ChangedLine {
  readonly before: string | null;
  readonly after: string;
}

/**
 * The text of a `.env` with other values for some settings. A setting that is set gets its value where it stands, one
 * that only a comment names after that comment, another one at the end; all else stays as it is.
 *
 * @throws PipelineError `usage` if the text would be read otherwise than with these changes alone.
 */
export function changeSettings(text: string, changes: readonly SettingChange[]) {
  const lineEnd = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = text === '' ? [] : text.split(/\r?\n/);
  const changed: ChangedLine[] = [];
  for (const { name, value } of changes) {
    const after = `${name}=${value}`;
    const isSet = new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`);
    const found = lines.flatMap((line, at) => (isSet.test(line) ? [at] : []));
    for (const at of found) {
      changed.push({ before: lines[at] ?? '', after });
      lines[at] = after;
    }
    if (found.length > 0) continue;
    changed.push({ before: null, after });
    const comment = lines.findLastIndex((line) => new RegExp(`^\\s*#\\s*${name}\\s*=`).test(line));
    if (comment >= 0) lines.splice(comment + 1, 0, after);
    else if (lines.at(-1) === '') lines.splice(-1, 0, after);
    else lines.push(after, '');
  }
  const written = lines.join(lineEnd);
  // Node reads a comment on a last line without an end as a setting.
  const wanted = {
    ...parseEnv(`${text}\n`),
    ...Object.fromEntries(changes.map(({ name, value }) => [name, value])),
  };
  if (!isDeepStrictEqual({ ...parseEnv(`${written}\n`) }, wanted)) {
    const settings = changes.map(({ name, value }) => `${name}=${value}`).join(' and ');
    throw usageError(`other lines would then be read otherwise: set ${settings} yourself`);
  }
  return { text: written, changed };
}

/** Puts settings into the `.env` of a folder, which is made for its owner alone if there is none. */
export function writeSettingsFile(folder: string, changes: readonly SettingChange[]) {
  const named = resolve(folder, '.env');
  const hasFile = existsSync(named);
  const file = hasFile ? realpathSync(named) : named;
  try {
    const { text, changed } = changeSettings(hasFile ? readFileSync(file, 'utf8') : '', changes);
    replaceSettingsFile(file, text, hasFile ? statSync(file).mode & 0o777 : 0o600);
    return { file: named, changed };
  } catch (error) {
    throw usageError(`${named} cannot be changed: ${messageOf(error)}`);
  }
}
