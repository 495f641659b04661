// What `npm test` needs beyond npm packages is one program, redis-server. Postgres comes from npm, and
// the tests start both themselves (test/support/global-setup.ts): here we only see to it that the
// program is there.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';

const POLICY = '/usr/sbin/policy-rc.d';
const COMMANDS = [
  ['apt-get', 'update'],
  ['apt-get', 'install', '-y', '--no-install-recommends', 'redis-server'],
];

/** @param {string} program @param {string[]} args */
function works(program, args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

const hasRedis = () => works('redis-server', ['--version']);

function installRedis() {
  // Debian starts what it installs. The tests want a server of their own, and a machine that only
  // wanted to test should not be left with a service; this file is Debian's way to say so.
  const ours = !existsSync(POLICY);
  if (ours) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    for (const [program, ...args] of COMMANDS) {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
      if (spawnSync(program, args, { stdio: 'inherit', env }).status !== 0) return;
    }
  } finally {
    if (ours) rmSync(POLICY, { force: true });
  }
}

if (!hasRedis() && process.getuid?.() === 0 && works('apt-get', ['--version'])) {
  console.log('redis-server is missing: installing it with apt-get');
  installRedis();
}
if (!hasRedis()) {
  const commands = COMMANDS.map((command) => `sudo ${command.join(' ')}`).join(' && ');
  console.error(
    `The tests need the program redis-server on the PATH. Install it, on Debian or Ubuntu by\n  ${commands}`,
  );
  process.exit(1);
}
