import { usageError } from '../../core/errors.ts';
import { decideEvent, ratioOfFactor } from '../../jobs/events/decide-event.ts';
import { type Cli, type JsonFlag, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { eventText, noSuchEvent } from './events-command.ts';

interface SetFlags extends JsonFlag {
  readonly factor?: string;
  readonly ignore?: boolean;
  readonly reset?: boolean;
}

export async function setEvent(cli: Cli, id: string, flags: SetFlags): Promise<void> {
  const chosen = [flags.factor !== undefined, flags.ignore === true, flags.reset === true];
  if (chosen.filter(Boolean).length !== 1) throw usageError('give one of --factor, --ignore and --reset');
  const ratio = flags.factor === undefined ? null : await parseFactor(flags.factor);
  const context = await openContext(cli);
  const event = await decideEvent(context, id, flags.reset === true ? 'reset' : ratio);
  if (event === null) throw await noSuchEvent(context, id);
  if (flags.json === true) return printJson(cli, event);
  print(cli, eventText(event));
}

/** Reads `a:b` as a ratio of shares, new for old: the inverse of the factor for prices. */
async function parseFactor(text: string): Promise<{ readonly new: number; readonly old: number }> {
  const ratio = ratioOfFactor(text);
  if (ratio !== null) return ratio;
  throw usageError(`--factor: "${text}" is not two whole numbers above 0, such as 1:2, which halves prices`);
}
