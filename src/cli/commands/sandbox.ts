import { type Clock, systemClock } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import { quoteForShell } from '../../core/wording.ts';
import { DEFAULT_BEHAVIOUR, DEFAULT_INSTRUMENTS, EXAMPLE_KEY } from '../../sandbox/behaviour.ts';
import { CASINGS } from '../../sandbox/response/format.ts';
import { print } from '../cli.ts';
import { defineCommand, type OptionType } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { integer, repeatable, text, word } from '../options.ts';

/** A fixed port, so that EOD_BASE_URL can stay the same. */
const SANDBOX_PORT = 8_090;

/** A clock that starts at the time that is typed. */
const clock: OptionType<Clock | undefined> = {
  description: 'start its clock at this time, e.g. 2025-09-05T22:00:00+05:30',
  placeholder: '<time>',
  parse(typed, name) {
    const start = Date.parse(typed);
    if (Number.isNaN(start))
      throw usageError(`${name}: "${typed}" is not a time such as 2025-09-05T22:00:00+05:30`);
    const offset = start - Date.now();
    return { now: () => Date.now() + offset };
  },
};

export default defineCommand({
  path: 'sandbox',
  group: 'Set up',
  summary: 'Start a simulated data service, to try things without a key. Runs until Ctrl-C.',
  options: {
    port: {
      ...integer('<number>', 'port to listen on; 0 chooses a free one', { least: 0, most: 65_535 }),
      default: SANDBOX_PORT,
    },
    host: { ...text('<address>', 'address to listen on'), default: '127.0.0.1' },
    accessKey: text('<key>', 'accept only this key (default: any key)'),
    instruments: {
      ...integer('<count>', 'instruments per exchange', { least: 1, most: 20_000 }),
      default: DEFAULT_INSTRUMENTS,
    },
    revision: {
      ...integer('<n>', 'number of corrections to the trade files; each changes a few rows of every day', {
        least: 0,
        most: 1_000,
      }),
      default: 0,
    },
    now: clock,
    casing: {
      ...word('<how>', `case of the keys in JSON: ${CASINGS.join(', ')}`, CASINGS),
      default: DEFAULT_BEHAVIOUR.casing,
    },
    delay: {
      ...integer('<ms>', 'milliseconds to wait before each response', { least: 0, most: 3_600_000 }),
      default: DEFAULT_BEHAVIOUR.delayMs,
    },
    notReady: {
      ...integer('<n>', 'respond to the first n calls of each request that the data is not ready', {
        least: 0,
      }),
      default: DEFAULT_BEHAVIOUR.notReady,
    },
    callsPerHour: {
      ...integer('<n>', 'calls served in a clock hour (IST); 0 for no limit', { least: 0 }),
      default: DEFAULT_BEHAVIOUR.callsPerHour,
    },
    historyDays: integer('<n>', 'how many days of history are served', { least: 0 }),
    keyDiesAfter: integer('<n>', 'the key expires after n calls', { least: 0 }),
    fault: repeatable(
      '<rule>',
      "a fault to respond with, e.g. status=503,every=7 or 'diagnostic=Key Expired.,first=1,operation=GetSeriesChange'",
    ),
  },
  json: false,
  examples: [
    'eod sandbox --port 8090',
    'eod sandbox --casing camel --calls-per-hour 900 --delay 50',
    "eod sandbox --fault status=503,every=7 --fault 'diagnostic=Calls per hour are limited.,first=1'",
  ],
  async run(cli, { port, host, accessKey, instruments, revision, now, fault, ...flags }) {
    const { parseFault, startSandbox } = await import('../../sandbox/index.ts');
    const { openCalendar } = await import('../open-context.ts');
    const { casing, delay, notReady, callsPerHour, historyDays, keyDiesAfter } = flags;
    const faults = (fault ?? []).map((rule) => parseFault(rule, '--fault'));
    const calendar = openCalendar(cli, await loadSettings(cli));
    const server = await cli.life.open(() =>
      startSandbox({
        port,
        host,
        accessKey,
        instrumentsPerExchange: instruments,
        revision,
        clock: now ?? systemClock,
        calendar,
        splits: true,
        behaviour: { casing, delayMs: delay, notReady, callsPerHour, historyDays, keyDiesAfter, faults },
      }),
    );
    print(cli, `sandbox listening on ${server.url}`);
    print(cli, `export EOD_BASE_URL=${server.url}`);
    print(cli, `export EOD_ACCESS_KEY=${quoteForShell(accessKey ?? EXAMPLE_KEY)}`);
    await cli.life.stopped;
  },
});
