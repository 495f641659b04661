import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImportReport } from '../../src/jobs/import/import-files.ts';
import { type Case, check } from '../support/bench.ts';
import { plainCopy } from '../support/copy.ts';
import { udiffFile } from '../support/files.ts';
import { settingsFor, tradingDaysBefore } from '../support/pipeline.ts';
import { dropDatabase, measured, migratedDatabase } from '../support/postgres.ts';
import { startChild } from '../support/processes.ts';
import { processorFigures } from '../support/processor.ts';
import { EXCHANGE } from '../support/records.ts';
import { checkCounts, checkRows } from './load.ts';

const FILES = 400;
const DATABASE = 'bench_import';

export const importFiles: Case = {
  benches: [
    {
      name: 'import',
      what: `${FILES} bhav copy files of the exchange`,
      against: 'plain COPY of the same rows',
      reach: [{ figure: 'ratio', atLeast: 0.7 }],
    },
  ],
  async *rounds(site) {
    const { server } = site;
    const days = tradingDaysBefore(site.small ? 4 : FILES);
    const perFile = Math.max(1, Math.round(site.records / days.length));
    const rows = days.length * perFile;
    const folder = await mkdtemp(join(server.folder, 'files-'));
    for (const [at, day] of days.entries()) {
      const name = `BhavCopy_${EXCHANGE}_CM_0_0_0_${day.replaceAll('-', '')}_F_0000.csv`;
      await writeFile(join(folder, name), udiffFile(perFile, at, day));
    }
    for (let round = 1; round <= site.rounds; round++) {
      const url = await migratedDatabase(server.url, DATABASE);
      const child = await startChild('import', settingsFor(url, site.source.url('first')), folder);
      const { result, walBytes, processor } = await measured(url, () => child.finish<ImportReport>());
      const { result: report, seconds } = result;
      checkCounts('import', report, { fetched: rows, inserted: rows });
      check('import', {
        files: [report.files.filter(({ state }) => state === 'loaded').length, days.length],
      });
      await checkRows('import', url, { rows, history: 0 });
      const copy = await plainCopy(server, url);
      check('plain COPY', { rows: [copy.rows, rows] });
      await dropDatabase(server.url, DATABASE);
      yield {
        import: {
          ratio: copy.seconds / seconds,
          rowsPerSecond: rows / seconds,
          seconds,
          copySeconds: copy.seconds,
          walMb: walBytes / 1e6,
          copyWalMb: copy.walBytes / 1e6,
          peakRssMb: result.peakRssMb,
          cpuSeconds: result.cpuSeconds,
          ...processorFigures(processor, copy.processor),
        },
      };
    }
    await rm(folder, { recursive: true });
  },
};
