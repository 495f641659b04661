import { usageError } from '../../core/errors.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { flag, required, text } from '../options.ts';
import { eventText, noSuchEvent } from './events.ts';

export default defineCommand({
  path: 'events set',
  summary:
    'Decide by hand what an event does to prices, on both exchanges together. The decision is kept when lists are imported again.',
  args: { id: required('the id of the event, from "eod events"') },
  options: {
    factor: text('<a:b>', 'multiply earlier prices by a ÷ b: 1:2 halves them'),
    ignore: flag('the event does not change prices'),
    reset: flag('undo the decision'),
  },
  json: 'the event',
  async run(cli, { id, factor, ignore, reset, json }) {
    const { decideEvent } = await import('../../jobs/events/decide-event.ts');
    const { openContext } = await import('../open-context.ts');
    if ([factor !== undefined, ignore, reset].filter(Boolean).length !== 1)
      throw usageError('give one of --factor, --ignore and --reset');
    const ratio = factor === undefined ? null : await parseFactor(factor);
    const context = await openContext(cli);
    const event = await decideEvent(context, id, reset ? 'reset' : ratio);
    if (event === null) throw noSuchEvent(id);
    if (json) return printJson(cli, event);
    print(cli, [event, ...event.others].map(eventText).join('\n'));
  },
});

/** Reads `a:b` as a ratio of shares, new for old: the inverse of the factor for prices. */
async function parseFactor(text: string): Promise<{ readonly new: number; readonly old: number }> {
  const { ratioOfFactor } = await import('../../jobs/events/decide-event.ts');
  const ratio = ratioOfFactor(text);
  if (ratio !== null) return ratio;
  throw usageError(`--factor: "${text}" is not two whole numbers above 0, such as 1:2, which halves prices`);
}
