import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

const FIXTURES = resolve('test/fixtures/bhavcopy');

/** The trading day of both files of a folder made here; each has a hundred rows. */
export const FOLDER_DAY = '2025-09-09';

export interface FolderEdit {
  /** Lines of these symbols are left out. */
  readonly without?: readonly string[];
  /** Another closing price for the first line of these symbols. */
  readonly close?: Readonly<Record<string, string>>;
  /** One more line of each exchange under each of these symbols. */
  readonly added?: readonly string[];
}

const SYMBOL = 7;
const CLOSE = 17;

/** A folder for `bhavSource`: a bhav copy of BSE and one of NSE, of the same day, as edited. */
export function bhavFolder({ without = [], close = {}, added = [] }: FolderEdit = {}): string {
  const folder = temporaryFolder();
  for (const name of readdirSync(FIXTURES)) {
    const [head = '', ...lines] = readFileSync(join(FIXTURES, name), 'utf8').trim().split(/\r?\n/);
    const rows = lines.map((line) => line.replaceAll('2025-08-29', FOLDER_DAY).split(','));
    const pattern = rows[0] ?? [];
    const edited = [
      ...rows.filter((row) => !without.includes(row[SYMBOL] ?? '')),
      ...added.map((symbol) => pattern.with(SYMBOL, symbol)),
    ].map((row) => row.with(CLOSE, close[row[SYMBOL] ?? ''] ?? row[CLOSE] ?? ''));
    writeFileSync(join(folder, name), `${[head, ...edited.map((row) => row.join(','))].join('\n')}\n`);
  }
  return folder;
}
