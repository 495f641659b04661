import { fileURLToPath } from 'node:url';
import { migrateDatabase } from '../../../src/migrate.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { execute, withDatabase } from '../template.ts';
import { eod, type Surroundings } from './eod.ts';

/** What is loaded: two backfills that overlap, and a night. */
export interface Workload {
  readonly first: Range;
  readonly second: Range;
  readonly night: string;
  /** Requested one by one for each trading day, so that there are many small windows. */
  readonly instruments: readonly string[];
}

interface Range {
  readonly from: string;
  readonly to: string;
}

/** Trading day by trading day, range by range (these split when a response breaks off), instrument by instrument. */
const OPERATIONS = [
  'GetBhavCopyCM',
  'GetCircuitBreakers',
  'GetFinRatioEOD',
  'GetSeriesChange',
  'GetTop5GainersLosers',
  'GetTotalTradeHighlights',
];

/** Some 4,700 windows. */
export const LONG: Workload = {
  first: { from: '2025-01-01', to: '2025-06-30' },
  second: { from: '2025-04-01', to: '2025-09-30' },
  night: '2025-09-30',
  instruments: ['TCS', 'INFY', 'M&M', 'RELIANCE', 'HDFCBANK', 'ITC', 'SBIN', 'BAJAJ-AUTO'],
};

/** Some 300 windows. */
export const SHORT: Workload = {
  first: { from: '2025-08-04', to: '2025-08-22' },
  second: { from: '2025-08-18', to: '2025-09-05' },
  night: '2025-09-05',
  instruments: ['TCS', 'M&M', 'BAJAJ-AUTO', 'ITC'],
};

export function backfillArgs({ from, to }: Range): string[] {
  return ['backfill', ...OPERATIONS, '--from', from, '--to', to];
}

const FILES = ['cm01OCT2019bhav.csv.zip', 'cm09OCT2019bhav.csv.zip', 'sec_bhavdata_full_14112024.csv'].map(
  (name) => fileURLToPath(new URL(`../../fixtures/files/${name}`, import.meta.url)),
);

/** Files of days that no backfill requests. */
export const importArgs = () => ['import', ...FILES];

export function nightlyArgs({ night }: Workload): string[] {
  return ['nightly', '--date', night];
}

/** Where a night runs: all operations of NSE, each of which the backfills request too. */
export function nightSurroundings(surroundings: Surroundings): Surroundings {
  return { ...surroundings, env: { ...surroundings.env, EOD_EXCHANGES: 'NSE' } };
}

/** A new migrated database. */
export async function newDatabase(adminUrl: string, name: string): Promise<string> {
  await execute(adminUrl, `create database ${name}`);
  const url = withDatabase(adminUrl, name);
  const database = openDatabase({ url, connections: 1 });
  await migrateDatabase(database).finally(() => database.close());
  return url;
}

/** Loads everything, one thing after the other, by one process nobody disturbs. */
export async function loadUndisturbed(surroundings: Surroundings, workload: Workload): Promise<void> {
  await eod(surroundings, backfillArgs(workload.first));
  await eod(surroundings, backfillArgs(workload.second));
  await eod(nightSurroundings(surroundings), nightlyArgs(workload));
  await eod(surroundings, importArgs());
}
