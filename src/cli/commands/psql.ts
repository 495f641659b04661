import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { usageError } from '../../core/errors.ts';
import { PACKAGE } from '../../core/package-folders.ts';
import { type Cli, logStderr, print } from '../cli.ts';
import { openReadable } from '../open-context.ts';

export async function psql(cli: Cli, args: readonly string[]): Promise<void> {
  const [first = '-'] = args;
  // psql would take it for the name of a user, and silently read statements from stdin.
  if (!first.startsWith('-')) {
    throw usageError(
      `"${first}" is no option of psql; write SQL after -c: eod psql -- -c "…", or into eod query "…"`,
    );
  }
  const { life } = cli;
  const { config, db } = await openReadable(cli, 'anything');
  const { address, env } = psqlArguments(db.url);
  const code = await life.ignoringInterrupts(() =>
    run(cli, [address, ...args], { ...startFile(cli), ...env }),
  );
  if (code !== null) {
    cli.exitCode = code;
    return;
  }
  const missing = 'psql was not found in the PATH';
  if (config.DATABASE_URL !== undefined) {
    throw usageError(`${missing}; any client may connect to ${address}, with the password of DATABASE_URL`);
  }
  logStderr(cli, `eod: ${missing}; any client may connect to the address below until Ctrl-C`);
  print(cli, db.url);
  // Without a timer, Node would end the process here.
  const timer = setInterval(() => undefined, 60_000);
  await life.stopped;
  clearInterval(timer);
}

/** Parameters of an address that psql knows; our driver knows others. */
const PSQL_PARAMETERS =
  /^(host|port|dbname|user|sslmode|sslrootcert|sslcert|sslkey|options|connect_timeout|application_name|target_session_attrs)$/;

/** The address without its password, which psql gets from the environment: the process list shows arguments. */
function psqlArguments(url: string): { readonly address: string; readonly env: Record<string, string> } {
  const address = new URL(url);
  const password = address.searchParams.get('password') ?? decodeURIComponent(address.password);
  address.password = '';
  for (const name of [...address.searchParams.keys()]) {
    if (!PSQL_PARAMETERS.test(name)) address.searchParams.delete(name);
  }
  return { address: address.href, env: password === '' ? {} : { PGPASSWORD: password } };
}

/** Variables by which psql would connect to another server than the address says. Our driver does not read them. */
const OTHER_SERVERS = ['PGHOSTADDR', 'PGSERVICE'];

/** Shows the time of each statement on a terminal; users who have a file of this kind decide by it. */
function startFile({ env, stdout }: Cli): Record<string, string> {
  const isOwn = env.PSQLRC !== undefined || existsSync(join(env.HOME ?? homedir(), '.psqlrc'));
  return isOwn || stdout.isTTY !== true ? {} : { PSQLRC: join(PACKAGE, 'deploy', 'psqlrc') };
}

/** Runs psql on our terminal. @returns its exit code, or null if psql is not installed. */
async function run(
  { env, cwd, life }: Cli,
  args: readonly string[],
  own: Record<string, string>,
): Promise<number | null> {
  const passed = Object.entries(env).filter(([name]) => !OTHER_SERVERS.includes(name));
  const child = spawn('psql', args, {
    cwd,
    env: { ...Object.fromEntries(passed), ...own },
    stdio: 'inherit',
  });
  const stop = () => void child.kill();
  life.signal.addEventListener('abort', stop);
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? resolve(null) : reject(error),
    );
    child.once('close', (code) => resolve(code ?? 1));
  });
}
