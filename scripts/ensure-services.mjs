// Besides npm packages, `npm test` needs four programs: redis-server, pgbouncer (for the test of poolers), chromium (for
// the test of the dashboard) and promtool (for the alerting rules). Postgres comes from npm. The tests start all of these
// themselves; this script only makes sure that the programs are installed.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';

const POLICY = '/usr/sbin/policy-rc.d';
/** Programs and the packages of Debian that have them. */
const PROGRAMS = {
  'redis-server': 'redis-server',
  pgbouncer: 'pgbouncer',
  chromium: 'chromium',
  promtool: 'prometheus',
};

/** @param {string} program @param {string[]} args */
function works(program, args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** The packages that are missing. */
const missing = () =>
  Object.entries(PROGRAMS).flatMap(([program, name]) => (works(program, ['--version']) ? [] : [name]));

/** @param {string[]} packages */
function commandsFor(packages) {
  return [
    ['apt-get', 'update'],
    ['apt-get', 'install', '-y', '--no-install-recommends', ...packages],
  ];
}

/** @param {string[]} packages */
function install(packages) {
  // Debian starts the services that it installs, unless this file forbids it. The tests start servers of their own, and
  // a machine on which tests are run should not be left with running services.
  const isOurs = !existsSync(POLICY);
  if (isOurs) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    for (const [program, ...args] of commandsFor(packages)) {
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
