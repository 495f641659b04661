// Compiles src/ to dist/ and copies what the compiler leaves behind (calendars, dashboard files).
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

rmSync(at('dist'), { recursive: true, force: true });
const tsc = spawnSync(
  process.execPath,
  [at('node_modules/typescript/bin/tsc'), '-p', at('tsconfig.build.json')],
  {
    stdio: 'inherit',
  },
);
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
cpSync(at('src'), at('dist'), {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || !path.endsWith('.ts'),
});
