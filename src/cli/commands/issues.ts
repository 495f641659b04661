import type { Config } from '../../core/config.ts';
import { priceEffectText } from '../../core/wording.ts';
import type { Context } from '../../jobs/context.ts';
import { titleOf } from '../../operations/registry.ts';
import { ISSUE_KINDS, issueCountsText, SMALL_EFFECT } from '../../state/issue-kinds.ts';
import type { Issue } from '../../state/issues.ts';
import { factorNotes, issueCommand } from '../../web/commands.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { exchangeOption, limit, words } from '../options.ts';
import { commandText, count, plural, rangeText, wrap } from '../output.ts';
import { pipelineLines } from '../shared-texts.ts';
import { readUnchecked } from './findings.ts';

export default defineCommand({
  path: 'issues',
  group: 'Repair',
  summary:
    'List what needs a person, each with the command that settles it. Missing rows, findings that are errors, and corporate actions that may move a price by a fifth or more come first; then the newest day, and of one day the largest effect.',
  options: {
    kind: words(`only these kinds: ${ISSUE_KINDS.join(', ')}`, ISSUE_KINDS, 'kind'),
    exchange: exchangeOption,
    limit: limit(50),
  },
  json: 'a list of issues',
  examples: ['eod issues', 'eod issues --kind withdrawal,suspicious', 'eod issues --exchange BSE --json'],
  async run(cli, { kind: kinds, exchange: exchanges, limit, json }) {
    const { readCurrent } = await import('../../jobs/runs/read-status.ts');
    const { issuesIn, readIssues } = await import('../../state/issues.ts');
    const { openContext } = await import('../open-context.ts');
    const context = await openContext(cli);
    const { config, db } = context;
    const { counts, issues } = await readIssues(db.drizzle, { kinds, exchanges }, limit);
    if (json) {
      return printJson(
        cli,
        issues.map((issue) => ({ ...issue, command: issueCommand(issue, config) })),
      );
    }
    const pipeline = pipelineLines(await readCurrent(context), config.EOD_TIMEZONE);
    const total = counts.reduce((sum, ofKind) => sum + ofKind.issues, 0);
    const isFiltered = kinds !== undefined || exchanges !== undefined;
    if (total === 0) return print(cli, [...pipeline, await noneText({ db }, isFiltered)].join('\n'));
    const listed = issues.reduce((sum, issue) => sum + issuesIn(issue), 0);
    const more = total > listed ? `; the first ${count(listed)} listed, --limit shows more` : '';
    print(
      cli,
      [
        ...pipeline,
        ...issues.map((issue) => issueText(issue, config)),
        '',
        wrap(`${issueCountsText(counts)}${more}`),
        ...factorNotes(issues),
      ].join('\n'),
    );
  },
});

/** An issue for people: what it is about, what is wrong, and the command that settles it. */
function issueText(issue: Issue, config: Config): string {
  const { items, text } = issue;
  const reason = text === null || text === '' ? [] : [`    ${items > 1 ? 'for example: ' : ''}${text}`];
  const command = commandText(`    ${issueCommand(issue, config)}`);
  return [wrap([headline(issue), ...reason].join('\n')), command].join('\n');
}

function headline({ kind, operation, exchange, exchanges, from, to, subject, items, effect }: Issue): string {
  const days = from === null || to === null ? '' : ` ${rangeText({ from, to })}`;
  const where = `${exchange}${days}`;
  switch (kind) {
    case 'reject':
      return `${plural(items, 'reject')}: ${titleOf(operation)} ${where}`;
    case 'withdrawal':
      return `withheld withdrawal of ${plural(effect ?? 0, 'row')}: ${titleOf(operation)} ${where}`;
    case 'suspicious':
      return `suspicious response: ${[titleOf(operation), where, subject].filter(Boolean).join(' ')}`;
    case 'corporate_action':
      if (items > 1)
        return `${plural(items, 'undecided corporate action')}, each of which moves the price by less than ${SMALL_EFFECT} %: ${exchanges.join(', ')}${days}`;
      return undecidedText(subject ?? '', { exchanges, day: from, effect });
    case 'finding':
      return `${plural(items, 'finding')} of ${subject}: ${where}`;
    case 'missing_right':
      // The key may use nothing of the exchange, or not this operation.
      return `missing right: ${operation === '' ? exchange : `${titleOf(operation)} ${exchanges.join(', ')}`}`;
  }
}

/** `undecided: ABC, rights, ex-date 2026-10-31 (BSE, NSE); at most 20 % of the price`. */
function undecidedText(
  subject: string,
  { exchanges, day, effect }: Pick<Issue, 'exchanges' | 'effect'> & { readonly day: string | null },
): string {
  // The subject is symbol and kind; no kind has a space.
  const kind = subject.split(' ').at(-1) ?? '';
  const symbol = subject.slice(0, -kind.length - 1);
  const moves = effect === null ? '' : `; ${priceEffectText(kind, effect)}`;
  return `undecided: ${symbol}, ${kind}, ex-date ${day} (${exchanges.join(', ')})${moves}`;
}

/** The text if no issue is listed. */
async function noneText({ db }: Pick<Context, 'db'>, isFiltered: boolean): Promise<string> {
  const { countIssues } = await import('../../state/issues.ts');
  const { readStateNumber } = await import('../../state/loads/state-numbers.ts');
  if (isFiltered) {
    const others = (await countIssues(db.drizzle)).reduce((sum, ofKind) => sum + ofKind.issues, 0);
    return `no issue matches${others === 0 ? '' : `; there ${others === 1 ? 'is' : 'are'} ${plural(others, 'other')}`}`;
  }
  if ((await readStateNumber(db.drizzle, null)).stateNumber === 0)
    return 'nothing is loaded yet, so nothing needs a person';
  return `nothing needs a person${await readUnchecked({ db })}`;
}
