import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { operations } from '../../src/operations/registry.ts';
import { runEod, spawnEod } from '../support/eod.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const cwd = temporaryFolder();
/** Settings of a real installation, which a demo must not touch. */
const env = {
  DATABASE_URL: 'postgres://eod:hunter2@127.0.0.1:1/eod',
  REDIS_URL: 'redis://127.0.0.1:1',
  EOD_BASE_URL: 'http://127.0.0.1:1',
  EOD_EXCHANGES: 'NSE',
  // A setting it respects; four demos of more would take a minute.
  EOD_INSTRUMENT_LIMIT: '2',
};

/** Is the demo's Postgres running? */
function serverRuns(): boolean {
  const { pid } = JSON.parse(readFileSync(join(cwd, '.eod/demo/postgres/server.json'), 'utf8')) as {
    pid: number;
  };
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** A process that has ended counts as there until its parent, or the system, has looked. */
async function serverGone(): Promise<void> {
  await waitFor(() => !serverRuns(), { what: 'the end of the private Postgres' });
}

/** The numbers of the table's last line: windows, skipped, fetched, inserted, updated, unchanged, rejected. */
function totals(stdout: string): number[] {
  const line = /^total +(.*)$/m.exec(stdout)?.[1] ?? '';
  return line.split(/ +/).map((text) => Number(text.replaceAll(',', '')));
}

test('the demo loads a week of everything, then finds all of it unchanged, and leaves nothing running', async () => {
  const first = await runEod(['demo'], { cwd, env });
  expect(first.stderr).not.toMatch(/eod:|"level"/);
  expect(first.code).toBe(0);
  for (const { name } of operations) expect(first.stdout).toMatch(new RegExp(`^${name} `, 'm'));
  const [windows, skipped, fetched, inserted, updated, , rejected] = totals(first.stdout);
  expect({ skipped, updated, rejected }).toEqual({ skipped: 0, updated: 0, rejected: 0 });
  expect(inserted).toBeGreaterThan(5_000);
  expect(first.stdout.match(/;$/gm)).toHaveLength(3);
  expect(first.stdout).toMatch(/psql 'postgres:\/\/eod:\w+@127\.0\.0\.1:\d+\/eod'/);
  await serverGone();

  const second = await runEod(['demo'], { cwd, env });
  expect(second.code).toBe(0);
  expect(totals(second.stdout).slice(0, 7)).toEqual([windows, 0, fetched, 0, 0, fetched, 0]);
  expect(second.stdout).toContain('all records are unchanged');
  await serverGone();

  const kept = spawnEod(['demo', '--keep'], { cwd, env });
  await kept.output(/stay up until Ctrl-C/, 30_000);
  expect(serverRuns()).toBe(true);
  kept.kill('SIGINT');
  expect(await kept.ended).toMatchObject({ code: 0 });
  await serverGone();

  const broken = spawnEod(['demo'], { cwd, env });
  await broken.output(/asking the sandbox/);
  // As under npm, which passes on what the terminal has sent already.
  broken.kill('SIGINT');
  broken.kill('SIGINT');
  expect(await broken.ended).toMatchObject({ code: 130 });
  await serverGone();
}, 120_000);
