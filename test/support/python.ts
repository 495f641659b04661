import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * A Python that has these packages, as pip names them, in an environment of its own below the temporary folder, which
 * is kept for the next run.
 *
 * Installing them takes minutes, so this is done only where EOD_TEST_PYTHON is 1.
 *
 * @returns its path; null where it is not requested, there is no Python or the packages cannot be had, which is said.
 */
export async function pythonWith(packages: readonly string[]): Promise<string | null> {
  if (process.env.EOD_TEST_PYTHON !== '1') {
    process.stdout.write(
      `what reads our files and tables by ${packages.join(', ')} is tested by "npm run test:consumers"\n`,
    );
    return null;
  }
  const hash = createHash('sha256').update(packages.join('\n')).digest('hex').slice(0, 12);
  const folder = join(tmpdir(), `eod-test-python-${hash}`);
  const python = join(folder, 'bin', 'python');
  const ready = join(folder, 'ready');
  if (existsSync(ready)) return python;
  try {
    rmSync(folder, { recursive: true, force: true });
    await execute('python3', ['-m', 'venv', folder], { timeout: 120_000 });
    const options = ['--quiet', '--disable-pip-version-check', '--only-binary', ':all:', '--retries', '1'];
    // There is no wheel of it.
    if (packages.includes('pyspark')) options.push('--no-binary', 'pyspark');
    await execute(python, ['-m', 'pip', 'install', ...options, ...packages], { timeout: 900_000 });
    writeFileSync(ready, '');
    return python;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const [why] = String((error as { stderr?: string }).stderr || error)
      .trim()
      .split('\n');
    process.stdout.write(
      `Python with ${packages.join(', ')} cannot be had here (${why}): what needs it is not tested\n`,
    );
    return null;
  }
}

/** Runs a script. @returns the JSON it prints. */
export async function runPython<Response>(
  python: string,
  script: string,
  args: readonly string[],
): Promise<Response> {
  const { stdout } = await execute(python, ['-c', script, ...args], { maxBuffer: 1e9, timeout: 120_000 });
  return JSON.parse(stdout) as Response;
}
