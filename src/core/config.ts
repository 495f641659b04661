import * as z from 'zod';
import { fileSettings, readSecretFiles, SECRET_SETTINGS } from './environment.ts';
import { usageError } from './errors.ts';
import { nearest } from './input.ts';
import { settings } from './settings.ts';

const schema = z.object(settings);

export type Config = Readonly<z.output<typeof schema>>;

/**
 * Validates the settings in an environment from `readEnvironment`, and reads those that are given as files.
 *
 * @param folder the paths of these files are relative to it.
 * @throws PipelineError `usage` that lists all problems at once, and no value of a secret.
 */
export function loadConfig(env: Readonly<Record<string, string>>, folder = '.'): Config {
  const { values, problems } = readSecretFiles(env, folder);
  const result = schema.safeParse({ ...env, ...values });
  const invalid = (result.error?.issues ?? []).map((issue) => {
    const name = String(issue.path[0]);
    // The address of the source is no secret; wrong ones may contain a password or the key.
    const isSecret =
      SECRET_SETTINGS.some((setting) => setting === name) ||
      (name === 'EOD_BASE_URL' && /[@?#]/.test(env[name] ?? ''));
    const origin = name in values ? ` (it comes from ${fileSettings[name]})` : '';
    const value = isSecret ? origin : ` (it is "${env[name]}")`;
    return `  ${name} ${issue.message}${value}`;
  });
  const mistyped = unknownSettings(env).flatMap(({ name, meant }) =>
    meant === null ? [] : [`  ${name} is no setting; did you mean ${meant}?`],
  );
  const lines = [...mistyped, ...problems.map((problem) => `  ${problem}`), ...invalid];
  if (result.success && lines.length === 0) return Object.freeze(result.data);
  throw usageError(
    lines.length === 1
      ? `a setting is wrong: ${lines[0]?.trimStart()}`
      : `the settings have ${lines.length} problems:\n${lines.join('\n')}`,
  );
}

/** A name that differs from a setting's in at most this many letters is probably a misspelling of it. */
const MAX_TYPOS = 2;

/** The variables that begin with EOD_ and are not settings, each with the setting that was probably meant, or null. */
export function unknownSettings(env: Readonly<Record<string, string>>) {
  const known = [...Object.keys(settings), ...Object.values(fileSettings)];
  return Object.keys(env)
    .filter((name) => name.startsWith('EOD_') && !known.includes(name))
    .map((name) => {
      // EOD_TIMEOUT resembles EOD_TIMEOUT_MS.
      const extended = known.find(
        (setting) =>
          name === `EOD_${setting}` || setting.startsWith(`${name}_`) || name.startsWith(`${setting}_`),
      );
      return { name, meant: nearest(name, known, MAX_TYPOS) ?? extended ?? null };
    });
}
