import { beforeAll, expect, test } from 'vitest';
import type { Requested } from '../../src/declaration/fields.ts';
import type { Operation } from '../../src/declaration/operation.ts';
import { createSource, type Extracted, type Row, type SourceSettings } from '../../src/extract/index.ts';
import { operations } from '../../src/operations/registry.ts';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { sandbox } from './support.ts';

const DAY = '2025-09-12';

function requestedOf(operation: Operation): Requested {
  const { windows, sample } = operation;
  return {
    exchange: operation.exchanges[0] ?? 'BSE',
    from: windows.per === 'range' ? '2025-09-08' : DAY,
    to: DAY,
    instruments: windows.per === 'instrument' ? ['M&M'] : [],
    params: sample.requested.params,
    calledOn: DAY,
  };
}

interface OperationResult {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly rejects: Extracted['rejects'];
  readonly fetched: number;
  readonly unknownFields: readonly string[];
}

/** A figure is a number or its digits, depending on the format; here only the digits count. */
function asText(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [column, typeof value === 'number' ? String(value) : value]),
  );
}

/** Rows, rejects and unknown fields of every operation, read by the pipeline itself. */
async function extract(
  behaviour: Partial<Behaviour>,
  settings: Partial<SourceSettings> = {},
): Promise<OperationResult[]> {
  const { url } = await sandbox({ behaviour });
  const source = createSource({
    baseUrl: url,
    accessKey: 'any-key',
    dateDialect: 'epoch',
    dateFormat: 'String',
    format: 'Json',
    timeZone: 'Asia/Kolkata',
    timeoutMs: 20_000,
    maxResponseBytes: 50_000_000,
    connections: 2,
    tlsVerify: true,
    ...settings,
  });
  try {
    const results: OperationResult[] = [];
    for (const operation of operations) {
      const about = requestedOf(operation);
      const { batches, rejects, fetched, unknownFields } = source.read(
        operation,
        about,
        await source.fetch(operation, about),
      );
      results.push({
        name: operation.name,
        rows: batches.flatMap((batch) => Array.from(batch.rows, asText)),
        rejects,
        fetched,
        unknownFields,
      });
    }
    return results;
  } finally {
    await source.close();
  }
}

const CASES: [string, Partial<Behaviour>, Partial<SourceSettings>][] = [
  ['as it comes', {}, {}],
  ['camel case', { casing: 'camel' }, {}],
  ['ISO dates in requests', {}, { dateDialect: 'iso-date' }],
  ['CSV', {}, { format: 'Csv' }],
  ['CSV files', {}, { format: 'CsvContent' }],
  ['XML', {}, { format: 'Xml' }],
];

let plain: readonly OperationResult[] = [];
beforeAll(async () => {
  plain = await extract({});
});

test.each(CASES)('the pipeline reads every operation: %s', async (_, behaviour, settings) => {
  const results = await extract(behaviour, settings);
  for (const [at, result] of results.entries()) {
    expect(result.rejects, result.name).toEqual([]);
    expect(result.unknownFields, result.name).toEqual([]);
    expect(result.fetched, result.name).toBeGreaterThan(0);
    expect(result.rows, result.name).toEqual(plain[at]?.rows);
  }
});
