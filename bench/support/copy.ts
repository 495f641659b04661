import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline as stream } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { BenchServer } from './postgres.ts';
import { measured, withClient } from './postgres.ts';
import type { ProcessorTimes } from './processor.ts';

/** What a plain COPY of rows took. */
export interface PlainCopy {
  readonly rows: number;
  readonly seconds: number;
  readonly walBytes: number;
  readonly processor: ProcessorTimes | null;
}

/**
 * Copies the stored bhav copy rows, in the order of the responses, from a file into an unpartitioned table with the
 * same columns, key and indexes.
 */
export async function plainCopy(server: BenchServer, url: string): Promise<PlainCopy> {
  const file = join(server.folder, `rows${new URL(url).pathname.replace('/', '-')}`);
  return withClient(url, async (client) => {
    await stream(
      client.query(
        copyTo(
          'copy (select * from market.bhavcopy_cm order by trade_date, exchange_instrument_id) to stdout',
        ),
      ),
      createWriteStream(file),
    );
    await client.query('drop table if exists plain');
    await client.query('create table plain (like market.bhavcopy_cm including defaults including indexes)');
    const copy = await measured(url, () =>
      stream(
        createReadStream(file, { highWaterMark: 256 * 1024 }),
        client.query(copyFrom('copy plain from stdin')),
      ),
    );
    await rm(file);
    const counted = await client.query<{ rows: string }>('select count(*) as rows from plain');
    return {
      rows: Number(counted.rows[0]?.rows),
      seconds: copy.seconds,
      walBytes: copy.walBytes,
      processor: copy.processor,
    };
  });
}
