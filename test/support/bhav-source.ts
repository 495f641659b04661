import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { operationNamed } from '../../src/operations/registry.ts';
import { UDIFF_COLUMNS } from '../../src/operations/tables/udiff.ts';
import type { SandboxOptions } from '../../src/sandbox/index.ts';
import { responseFields, type SourceRecord } from '../../src/sandbox/response/record.ts';

/** What the files do not have is empty. */
const NOTHING: SourceRecord = Object.fromEntries(
  responseFields(operationNamed('GetBhavCopyCM').shapes[0].table).map(({ source }) => [source, null]),
);

/**
 * The options of a sandbox that serves GetBhavCopyCM only from the UDiFF bhav copies (csv) in a folder: a day without a
 * file is empty. Numbers are sent as they are printed.
 */
export function bhavSource(folder: string): Pick<SandboxOptions, 'dataSets'> {
  const records = readdirSync(folder)
    .filter((name) => /\.csv$/i.test(name))
    .sort()
    .flatMap((name) => {
      const rows: Record<string, string>[] = parse(readFileSync(join(folder, name), 'utf8'), {
        columns: true,
        bom: true,
        trim: true,
      });
      return rows.map((row) => ({
        ...NOTHING,
        ...Object.fromEntries(
          Object.entries(UDIFF_COLUMNS).map(([column, source]) => [source, row[column] || null]),
        ),
      }));
    });
  return {
    dataSets: {
      GetBhavCopyCM: {
        table: 'bhavcopy_cm',
        records: (market, { range, exchange, instruments }) =>
          records.flatMap((record) => {
            const day = String(record.tradDt);
            const isRequested =
              range !== null &&
              record.src === exchange &&
              day >= range.from &&
              day <= range.to &&
              day <= market.publishedUntil() &&
              (instruments.length === 0 || instruments.includes(String(record.symbol)));
            return isRequested ? [{ ...record, ...market.audit('bhavcopy', exchange, day) }] : [];
          }),
      },
    },
  };
}
