import type { Cli } from './cli.ts';
import { count } from './output.ts';

export const sizeText = (bytes: number) =>
  bytes < 1e6 ? `${count(bytes / 1e3)} kB` : `${count(bytes / 1e6)} MB`;

const PROGRESS_EVERY_MS = 500;

/** Shows on a terminal how much has been read; how much there is in all is not known before the end. */
export function progressLine({ stderr, told }: Cli, table: string) {
  let bytes = 0;
  let next = Date.now() + PROGRESS_EVERY_MS;
  let isShown = false;
  return {
    add(more: number) {
      bytes += more;
      if (stderr.isTTY !== true || told === 'nothing' || Date.now() < next) return;
      next = Date.now() + PROGRESS_EVERY_MS;
      isShown = true;
      stderr.write(`\r${table}: ${sizeText(bytes)} read`);
    },
    end() {
      if (isShown) stderr.write('\n');
    },
  };
}
