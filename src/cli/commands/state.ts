import { readStateNumber } from '../../state/loads/state-numbers.ts';
import { type Cli, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openReadable } from '../open-context.ts';
import { parseMoment } from '../options.ts';
import { momentText } from '../output.ts';

interface Flags extends JsonFlag {
  readonly at?: string;
}

export async function showState(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const at = flags.at === undefined ? null : parseMoment('--at', flags.at, { config });
  const { db } = await openReadable(cli, 'tables');
  const { stateNumber, committedAt } = await readStateNumber(db.drizzle, at);
  if (flags.json === true) return printJson(cli, { state: stateNumber, committedAt });
  if (committedAt === null) return print(cli, 'database state 0: nothing has been loaded yet');
  const when = momentText(committedAt, config.EOD_TIMEZONE);
  print(
    cli,
    `database state ${stateNumber}, since ${when} (${config.EOD_TIMEZONE})\nmarket_history.<table>_at(${stateNumber}) shows it`,
  );
}
