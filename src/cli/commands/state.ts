import { usageError } from '../../core/errors.ts';
import { contentDigest, digestUpTo, type Verification, verify } from '../../load/market/digests.ts';
import { versionAt } from '../../load/state/loads/versions.ts';
import { pairTitle } from '../../operations/registry.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openReadable } from '../open-context.ts';
import { parseMoment } from '../options.ts';
import { firstLines, momentText, plural } from '../output.ts';

interface Flags extends JsonFlag {
  readonly at?: string;
  readonly digest?: boolean;
  readonly content?: boolean;
}

interface VerifyFlags extends JsonFlag {
  readonly state?: number;
  readonly digest?: string;
}

export async function showState(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const at = flags.at === undefined ? null : parseMoment('--at', flags.at, { config });
  const { db } = await openReadable(cli, 'tables');
  const { version, committedAt } = await versionAt(db.drizzle, at);
  const more = {
    ...(flags.digest === true ? { digest: await digestUpTo(db, version, cli.life.signal) } : {}),
    ...(flags.content === true ? { content: await contentDigest(db, version) } : {}),
  };
  if (flags.json === true) return printJson(cli, { state: version, committedAt, ...more });
  if (committedAt === null) return print(cli, 'database state 0: nothing has been loaded yet');
  const when = momentText(committedAt, config.EOD_TIMEZONE);
  const digests = Object.entries(more).map(([name, digest]) => `\n${name} ${digest ?? 'not computed'}`);
  print(
    cli,
    `database state ${version}, since ${when} (${config.EOD_TIMEZONE})\nmarket_history.<table>_at(${version}) shows it${digests.join('')}`,
  );
}

export async function verifyStates(cli: Cli, { state, digest, json }: VerifyFlags): Promise<void> {
  if (digest !== undefined && !/^[0-9a-f]{64}$/.test(digest)) {
    throw usageError('--digest takes the 64 digits that "eod state --digest" prints');
  }
  if (digest !== undefined && state === undefined) throw usageError('--digest: name its state with --state');
  const { db } = await openReadable(cli, 'tables');
  const { version: newest } = await versionAt(db.drizzle, null);
  if (state !== undefined && state > newest)
    throw usageError(`there is no state ${state}: the newest is ${newest}`);
  const found = await verify(db, state ?? newest, cli.life.signal);
  // Interrupted, it may not have come to the digest.
  const isAsNoted =
    found.digest === null && cli.life.signal.aborted ? null : digest === undefined || found.digest === digest;
  if (json === true) printJson(cli, { ...found, isAsNoted });
  else print(cli, verificationText(found, isAsNoted));
  cli.exitCode =
    cli.life.cutShort() ?? (found.isIntact === true && isAsNoted === true ? EXIT.done : EXIT.failed);
}

export function verificationText(found: Verification, isAsNoted: boolean | null): string {
  const { state, digest, checkedTo, checked, replaced, differences, strayRows } = found;
  const before =
    replaced === 0
      ? ''
      : `; of ${plural(replaced, 'load')} only the chain, because the load of a later rebuild covers their rows`;
  const isRight = isAsNoted === false ? false : found.isIntact;
  const verdict =
    isRight === null
      ? 'interrupted before the end, and nothing found that differs'
      : isRight
        ? 'all rows are as they were loaded'
        : 'not all rows are as they were loaded';
  return [
    ...firstLines(
      differences,
      (one) =>
        `state ${one.state}: load ${one.load} of ${pairTitle(one)}${one.from === null ? '' : ` ${one.from} to ${one.to}`}: ${one.problem}`,
    ),
    ...strayRows.map(
      ({ table, rows }) => `${table}: ${plural(rows, 'row')} of no load, or of a day that it did not change`,
    ),
    ...(isAsNoted !== false ? [] : [`the digest of state ${state} is another than the one given`]),
    `${plural(checked, 'load')} checked up to state ${checkedTo}${before}: ${verdict}`,
    `${checkedTo > state ? `the digest of state ${state} is` : 'digest'} ${digest ?? 'none'}`,
  ].join('\n');
}
