// Besides npm packages, `npm test` needs three programs: redis-server, pgbouncer (for the test of poolers) and chromium
// (for the test of the dashboard). Postgres comes from npm. The tests start all of these themselves; this script only
// makes sure that the programs are installed.
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
  // Debian starts the services that it installs, unless this file forbids it. The tests start servers of their own, and
  // a machine on which tests are run should not be left with running services.
  const isOurs = !existsSync(POLICY);
  if (isOurs) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    for (const [program, ...args] of commandsFor(programs)) {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
      if (spawnSync(program, args, { stdio: 'inherit', env }).status !== 0) return;
    }
  } finally {
    if (isOurs) rmSync(POLICY, { force: true });
  }
}

if (missing().length > 0 && process.getuid?.() === 0 && works('apt-get', ['--version'])) {
  console.log(`installing ${missing().join(' and ')} with apt-get`);
  install(missing());
}
if (missing().length > 0) {
  const commands = commandsFor(missing()).map((command) => `sudo ${command.join(' ')}`);
  console.error(
    `The tests need ${missing().join(' and ')} on the PATH. On Debian or Ubuntu, install with\n  ${commands.join(' && ')}`,
  );
  process.exit(1);
}
