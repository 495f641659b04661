import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import { SET_CLOCK, writePrograms } from '../support/programs.ts';
import { pythonWith } from '../support/python.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { blocksOf } from './examples.ts';

const blocks = blocksOf('docs/operations.md');

/** The example of the page in this language with this text in it. */
function example(language: string, containing: string): string {
  const found = blocks.filter((block) => block.language === language && block.text.includes(containing));
  expect(found, `${language} with ${containing}`).toHaveLength(1);
  return found[0]?.text ?? '';
}

/** The evening of a session; the schedulers begin at 23:15 in India. */
const NIGHT = '2026-11-23';
const NOW = `${NIGHT}T23:15:00+05:30`;
const NIGHTLY = `nightly --date ${NIGHT}`;
const WAIT = `wait --night ${NIGHT} --timeout 30m`;
const BACKFILL = `backfill --all --from ${NIGHT} --to ${NIGHT}`;

/**
 * A machine as the page expects it: a folder with `.env`, `eod` in a folder for programs, a server of Postgres, and
 * the evening of a session.
 *
 * @param problem what is wrong: an operation that fails at the first call (exit code 1), or a setting (2).
 */
async function machine(problem: 'none' | 'failing once' | 'a wrong setting' = 'none') {
  const root = temporaryFolder();
  const [folder, bin] = [join(root, 'srv'), join(root, 'bin')];
  mkdirSync(folder);
  const { url } = await testDatabase();
  const started = Date.now();
  const sandbox = await openSandbox({
    instrumentsPerExchange: 5,
    clock: { now: () => Date.parse(NOW) + Date.now() - started },
    behaviour: {
      faults:
        problem === 'failing once'
          ? [{ kind: 'status', value: '404', first: 1, operation: 'GetSeriesChange' }]
          : [],
    },
  });
  const settings = {
    DATABASE_URL: url,
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: 'demo-key-1234',
    EOD_EXCHANGES: 'NSE',
    EOD_OPERATION_EXCHANGES: '',
    EOD_INSTRUMENT_LIMIT: '1',
    EOD_LOOKBACK_SESSIONS: '1',
    EOD_CALLS_PER_HOUR: '100000',
    EOD_BACKOFF_MS: '10',
    ...(problem === 'a wrong setting' ? { EOD_CONCURRENCY: 'many' } : {}),
  };
  writeFileSync(
    join(folder, '.env'),
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  writePrograms(bin, {}, `echo "$@" >>'${root}/calls'; export NODE_OPTIONS='${SET_CLOCK}' TEST_CLOCK=${NOW}`);
  return {
    root,
    folder,
    settings,
    /** An example with the folders of this machine, and without its pauses. */
    here: (text: string) =>
      text
        .replaceAll('/srv/eod', folder)
        .replaceAll('/usr/local/bin', bin)
        .replaceAll(/\b600\b/g, '0')
        .replaceAll('duration(minutes=10)', 'duration(seconds=0)'),
    /** How `eod` was called, in that order. */
    calls: () => {
      const file = join(root, 'calls');
      return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
    },
    /** How many prices of the night are there. */
    prices: async () =>
      (
        await query<{ rows: number }>(
          url,
          `select count(*)::int as rows from market.bhavcopy_cm where trade_date = '${NIGHT}'`,
        )
      )[0]?.rows,
    bin,
  };
}

/** Runs a program with nothing in its environment but this. @returns its exit code and all that it printed. */
function run(
  program: string,
  args: readonly string[],
  options: { cwd: string; env: Record<string, string> },
) {
  return new Promise<{ code: number | null; printed: string }>((resolve) => {
    execFile(program, args, { ...options, timeout: 170_000, maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), printed: `${stdout}${stderr}` }),
    );
  });
}

describe('systemd', () => {
  const service = example('ini', 'eod-night.service');
  const timer = example('ini', 'eod-night.timer');
  const setTo = (unit: string, name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

  /** As the service manager starts it, with the PATH that it gives. */
  async function start({ here }: Awaited<ReturnType<typeof machine>>) {
    const [program = '', ...args] = here(setTo(service, 'ExecStart')).split(' ');
    const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin', LANG: 'C.UTF-8' };
    return run(program, args, { cwd: here(setTo(service, 'WorkingDirectory')), env });
  }

  test('accepts both units and the time', async ({ skip }) => {
    if (spawnSync('systemd-analyze', ['--version']).status !== 0) {
      process.stdout.write('there is no systemd-analyze here: the units are not checked by it\n');
      return skip();
    }
    const { here, root, bin } = await machine();
    const units = { 'eod-night.service': service, 'eod-night.timer': timer };
    for (const [name, text] of Object.entries(units)) writeFileSync(join(root, name), here(text));
    const files = Object.keys(units).map((name) => join(root, name));
    const env = { PATH: `${bin}:${process.env.PATH}` };
    expect(await run('systemd-analyze', ['verify', ...files], { cwd: root, env })).toEqual({
      code: 0,
      printed: '',
    });
    const time = await run('systemd-analyze', ['calendar', setTo(timer, 'OnCalendar')], { cwd: root, env });
    expect(time.code, time.printed).toBe(0);
    expect(time.printed).toMatch(/Normalized form: \*-\*-\* 23:15:00 Asia\/Kolkata/);
  });

  test('loads the night; what fails is begun again, except with 2', async () => {
    const own = await machine();
    const { code, printed } = await start(own);
    expect(code, printed).toBe(0);
    expect(await own.prices()).toBeGreaterThan(0);
    expect(setTo(service, 'Restart')).toBe('on-failure');
    expect((await start(await machine('a wrong setting'))).code).toBe(
      Number(setTo(service, 'RestartPreventExitStatus')),
    );
  });
});

describe('cron', () => {
  const lines = example('crontab', 'CRON_TZ').split('\n');
  const jobs = lines.filter((line) => /^[\d*]/.test(line));

  /** As cron runs it: with sh, in the home of the user, and of the environment only what the table sets. */
  async function start({ here, root }: Awaited<ReturnType<typeof machine>>, line: string) {
    const settings = lines.flatMap((one) => {
      const [, name, value] = /^(\w+)=(.*)$/.exec(one) ?? [];
      return name === undefined ? [] : [[name, here(value ?? '')]];
    });
    const [, command = ''] = /^(?:\S+ +){5}(.*)$/.exec(line) ?? [];
    // There, it would be the end of the command.
    expect(command).not.toContain('%');
    const env = { HOME: root, SHELL: '/bin/sh', PATH: '/usr/bin:/bin', ...Object.fromEntries(settings) };
    return run('/bin/sh', ['-c', here(command)], { cwd: root, env });
  }

  test('loads the night, tries once more after 1, and then the night is there', async () => {
    const own = await machine('failing once');
    const [night = '', after = ''] = jobs;
    expect(jobs).toHaveLength(2);
    const loaded = await start(own, night);
    expect(loaded.code, loaded.printed).toBe(0);
    // The mail that cron sends.
    expect(loaded.printed).toContain('GetSeriesChange');
    expect(own.calls()).toEqual(['-q nightly', '-q nightly']);
    expect(await start(own, after)).toMatchObject({ code: 0 });
    expect(existsSync(join(own.folder, 'prices.parquet'))).toBe(true);
  });

  test('does not try again what fails with 2, nor begin in another folder', async () => {
    const wrong = await machine('a wrong setting');
    expect((await start(wrong, jobs[0] ?? '')).printed).toContain('EOD_CONCURRENCY');
    expect(wrong.calls()).toEqual(['-q nightly']);
    const away = await machine();
    const here = (text: string) => away.here(text).replaceAll(away.folder, '/no/folder');
    expect((await start({ ...away, here }, jobs[0] ?? '')).code).not.toBe(0);
    expect(away.calls()).toEqual([]);
  });
});

/** Installing one, and starting it twice on a machine that is busy. */
const LONG = { timeout: 1_200_000 };

describe.each([
  {
    name: 'Airflow',
    text: 'import pendulum',
    packages: ['apache-airflow>=3.1,<4'],
    file: 'home/dags/market_day.py',
    prepare: ['airflow', 'db', 'migrate'],
    start: ['airflow', 'dags', 'test', 'market_day', NOW],
    calls: [BACKFILL, NIGHTLY, WAIT],
  },
  {
    name: 'Dagster',
    text: 'import dagster',
    packages: ['dagster>=1.12,<2'],
    file: 'market_day.py',
    // On the evening of a day, the schedule requests the partition of this day.
    prepare: [
      'python',
      '-c',
      `import dagster, datetime, market_day
with dagster.build_schedule_context(scheduled_execution_time=datetime.datetime.fromisoformat("${NOW}")) as context:
    tick = market_day.defs.resolve_schedule_def("market_schedule").evaluate_tick(context)
    assert [run.partition_key for run in tick.run_requests] == ["${NIGHT}"], tick`,
    ],
    start: [
      ...['dagster', 'job', 'execute', '-f', 'market_day.py', '-j', 'market'],
      ...['--tags', JSON.stringify({ 'dagster/partition': NIGHT })],
    ],
    calls: [BACKFILL, NIGHTLY, WAIT],
  },
  {
    name: 'Prefect',
    text: 'from prefect import',
    packages: ['prefect>=3,<4'],
    file: 'market_night.py',
    prepare: ['python', '-m', 'py_compile', 'market_night.py'],
    // With a server of its own, which ends with it.
    start: ['python', '-c', `import market_night; market_night.market_night("${NIGHT}")`],
    calls: [NIGHTLY, WAIT],
  },
])('$name', ({ text, packages, file, prepare, start, calls }) => {
  /** In an environment that has nothing of the tests. */
  async function begin(own: Awaited<ReturnType<typeof machine>>, python: string) {
    const { root, bin, here } = own;
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), here(example('python', text)));
    const env = {
      HOME: root,
      PATH: `${bin}:${dirname(python)}:/usr/bin:/bin`,
      AIRFLOW_HOME: join(root, 'home'),
      AIRFLOW__CORE__LOAD_EXAMPLES: 'false',
      DAGSTER_HOME: root,
      DAGSTER_DISABLE_TELEMETRY: '1',
      PREFECT_HOME: join(root, 'home'),
      // On a busy machine it needs more than its 20 seconds.
      PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS: '120',
      DO_NOT_TRACK: '1',
    };
    const shell = ([program = '', ...args]: readonly string[]) => run(program, args, { cwd: root, env });
    const prepared = await shell(prepare);
    expect(prepared.code, prepared.printed).toBe(0);
    return shell(start);
  }

  test('loads the day, again after 1, and then it is there', LONG, async ({ skip }) => {
    const python = await pythonWith(packages);
    if (python === null) return skip();
    const own = await machine('failing once');
    const { code, printed } = await begin(own, python);
    expect(code, printed).toBe(0);
    expect(own.calls(), printed).toEqual([calls[0], ...calls]);
    expect(await own.prices()).toBeGreaterThan(0);
  });

  test('does not try again what fails with 2', LONG, async ({ skip }) => {
    const python = await pythonWith(packages);
    if (python === null) return skip();
    const own = await machine('a wrong setting');
    const { code, printed } = await begin(own, python);
    expect(code, printed).toBe(1);
    expect(own.calls(), printed).toEqual(calls.slice(0, 1));
  });
});
