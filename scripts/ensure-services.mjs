// What `npm test` needs beyond npm packages are three programs: redis-server, pgbouncer for the one test of
// poolers, and chromium for that of the dashboard. Postgres comes from npm, and the tests start all of them
// themselves: here we only see to it that the programs are there.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';

const POLICY = '/usr/sbin/policy-rc.d';
const PROGRAMS = ['redis-server', 'pgbouncer', 'chromium'];

/** @param {string} program @param {string[]} args */
function works(program, args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

const missing = () => PROGRAMS.filter((program) => !works(program, ['--version']));

/** @param {string[]} programs */
function commandsFor(programs) {
  return [
    ['apt-get', 'update'],
    ['apt-get', 'install', '-y', '--no-install-recommends', ...programs],
  ];
}

/** @param {string[]} programs */
function install(programs) {
  // Debian starts what it installs. The tests want servers of their own, and a machine that only
  // wanted to test should not be left with services; this file is Debian's way to say so.
  const ours = !existsSync(POLICY);
  if (ours) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    for (const [program, ...args] of commandsFor(programs)) {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
      if (spawnSync(program, args, { stdio: 'inherit', env }).status !== 0) return;
    }
  } finally {
    if (ours) rmSync(POLICY, { force: true });
  }
}

if (missing().length > 0 && process.getuid?.() === 0 && works('apt-get', ['--version'])) {
  console.log(`${missing().join(' and ')} missing: installing with apt-get`);
  install(missing());
}
if (missing().length > 0) {
  const commands = commandsFor(missing()).map((command) => `sudo ${command.join(' ')}`);
  console.error(
    `The tests need ${missing().join(' and ')} on the PATH. On Debian or Ubuntu install by\n  ${commands.join(' && ')}`,
  );
  process.exit(1);
}
