import { usageError } from '../../core/errors.ts';
import { decideEvent, ignoreEvents, ratioOfFactor, smallEvents } from '../../jobs/events/decide-event.ts';
import { type Cli, confirm, type JsonFlag, print, printJson, type YesFlag } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { count, plural, wrap } from '../output.ts';
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
  print(cli, [event, ...event.others].map(eventText).join('\n'));
}

interface IgnoreFlags extends JsonFlag, YesFlag {
  readonly below?: string;
  readonly dryRun?: boolean;
}

export async function ignoreSmall(cli: Cli, flags: IgnoreFlags): Promise<void> {
  const below = readPercent(flags.below);
  const context = await openContext(cli);
  const { small, large, unknown } = await smallEvents(context, below);
  const isDryRun = flags.dryRun === true;
  const number = plural(small.length, 'corporate action');
  const warning = `This ignores ${number} that ${small.length === 1 ? 'moves' : 'move'} the price by less than ${below} %.`;
  if (!isDryRun && small.length > 0 && !(await confirm(cli, warning, flags))) return;
  if (!isDryRun) await ignoreEvents(context, small.flat());
  const ids = small.flatMap(([id]) => id ?? []);
  if (flags.json === true) return printJson(cli, { below, isDryRun, ignored: ids, large, unknown });
  const reasons = [
    ...(large === 0 ? [] : [`${count(large)} may move the price by ${below} % or more`]),
    ...(unknown === 0 ? [] : [`of ${count(unknown)} that is not known`]),
  ];
  print(
    cli,
    wrap(
      [
        ...(isDryRun ? ids : []),
        `${isDryRun ? 'would ignore' : 'ignored'} ${count(small.length)}; ${large + unknown === 0 ? 'none' : count(large + unknown)} left for review${reasons.length === 0 ? '' : `: ${reasons.join(', ')}`}`,
      ].join('\n'),
    ),
  );
}

/** Reads `5` or `5%`. */
function readPercent(text: string | undefined): number {
  if (text === undefined)
    throw usageError('give --below, such as --below 5: what moves the price by less is ignored');
  const value = Number(text.trim().replace(/ ?%$/, '') || Number.NaN);
  if (value > 0 && value <= 100) return value;
  throw usageError(`--below: "${text}" is not a percentage above 0 and up to 100, such as 5`);
}

/** Reads `a:b` as a ratio of shares, new for old: the inverse of the factor for prices. */
async function parseFactor(text: string): Promise<{ readonly new: number; readonly old: number }> {
  const ratio = ratioOfFactor(text);
  if (ratio !== null) return ratio;
  throw usageError(`--factor: "${text}" is not two whole numbers above 0, such as 1:2, which halves prices`);
}
