import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

interface Asset {
  /** It changes with the content, so that browsers may cache it forever. */
  readonly url: string;
  readonly type: string;
  readonly body: Buffer;
}

function asset(name: string, type: string): Asset {
  const body = readFileSync(new URL(`./assets/${name}`, import.meta.url));
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 12);
  return { url: `/assets/${hash}/${name}`, type, body };
}

/** The files that pages load. */
export const ASSETS = {
  style: asset('style.css', 'text/css; charset=utf-8'),
  script: asset('dashboard.js', 'text/javascript; charset=utf-8'),
  board: asset('board.js', 'text/javascript; charset=utf-8'),
  icon: asset('icon.svg', 'image/svg+xml'),
} as const;
