import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CODE } from '../core/package-folders.ts';
import { sha256 } from '../core/sha256.ts';

/** Its address changes with its content, so that browsers may cache it forever. */
function asset(name: string, type: string) {
  const body = readFileSync(join(CODE, 'web', 'assets', name));
  const hash = sha256(body).slice(0, 12);
  return { url: `/assets/${hash}/${name}`, type, body };
}

/** The files that pages load. */
export const ASSETS = {
  style: asset('style.css', 'text/css; charset=utf-8'),
  script: asset('refresh.js', 'text/javascript; charset=utf-8'),
  icon: asset('icon.svg', 'image/svg+xml'),
} as const;
