#!/usr/bin/env node
// Exit code 1 if a production dependency has a known vulnerability that is not listed as an exception in
// scripts/audit-exceptions.json: { "<package>": "<why it does not concern us>" }; 3 if the registry offers no audit.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const run = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8' });

function parsed() {
  try {
    return JSON.parse(run.stdout);
  } catch {
    return null;
  }
}

const report = parsed();
if (report === null || report.vulnerabilities === undefined) {
  // Not a failure, because mirrors of the registry often have no audit service: exit code 3.
  const why =
    report?.message ?? report?.error?.summary ?? run.stderr.trim().split('\n').at(-1) ?? 'no response';
  console.log(
    `audit: NOT DONE, the registry offers no audit here (${why.replace(/https?:\/\/\S+/g, 'the registry')})`,
  );
  process.exit(3);
}

const exceptions = JSON.parse(readFileSync(new URL('audit-exceptions.json', import.meta.url), 'utf8'));
const vulnerable = Object.entries(report.vulnerabilities);
const unexplained = vulnerable.filter(([name]) => exceptions[name] === undefined);
for (const [name, { severity }] of unexplained)
  console.error(`audit: ${name}: ${severity}, not an exception`);
console.log(`audit: ${vulnerable.length} vulnerable packages, ${unexplained.length} of them not exceptions`);
process.exit(unexplained.length === 0 ? 0 : 1);
