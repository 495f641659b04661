import { describe, expect, test } from 'vitest';
import { readExchangeFile } from '../../../src/extract/files/read-exchange-file.ts';
import { isZip, newUnpackLimit, unzip } from '../../../src/extract/files/unpack.ts';
import { type Entry, zip } from '../../support/zip.ts';

const everything = () => true;
const small = () => ({ bytes: 2_000, entries: 10 });

async function texts(
  bytes: Buffer,
  wanted: (name: string) => boolean = everything,
  limit = newUnpackLimit(),
) {
  const texts: [string, string][] = [];
  for await (const { name, data } of unzip(bytes, wanted, limit)) texts.push([name, data.toString()]);
  return texts;
}

const read = (bytes: Buffer) => readExchangeFile('a.zip', bytes, 'Asia/Kolkata');

describe('zip archives', () => {
  test.each([false, true])(
    'deflated and stored entries, a comment at the end, any name (zip64: %s)',
    async (zip64) => {
      const bytes = zip(
        [
          { name: 'a.csv', text: 'x'.repeat(10_000) },
          { name: '../../b.csv', text: 'stored', stored: true },
          { name: 'empty/', text: '', stored: true },
        ],
        { comment: 'made by hand', zip64 },
      );
      expect(isZip(bytes)).toBe(true);
      expect(await texts(bytes)).toEqual([
        ['a.csv', 'x'.repeat(10_000)],
        ['../../b.csv', 'stored'],
        ['empty/', ''],
      ]);
      expect(await texts(bytes, (name) => name === 'a.csv')).toHaveLength(1);
      expect(await texts(zip([], { zip64 }))).toEqual([]);
    },
  );

  test('an archive by Python’s zipfile, whose local header is of the zip64 kind', async () => {
    const bytes = Buffer.from(
      'UEsDBC0AAAAIAAAAIQCPXQ5e//////////8FABQAYS5jc3YBABAAZAAAAAAAAAAGAAAAAAAAAKuooD0AAFBLAQItAy' +
        '0AAAAIAAAAIQCPXQ5eBgAAAGQAAAAFAAAAAAAAAAAAAACAAQAAAABhLmNzdlBLBQYAAAAAAQABADMAAAA9AAAAAAA=',
      'base64',
    );
    expect(await texts(bytes)).toEqual([['a.csv', 'x'.repeat(100)]]);
  });

  test.each<[string, Entry, RegExp]>([
    ['a wrong checksum', { name: 'a', text: 'abc', says: { crc: 1 } }, /broken: wrong checksum of a/],
    [
      'more inside than declared (a bomb)',
      { name: 'a', text: 'x'.repeat(1_000_000), says: { unpacked: 10 } },
      /broken.*too many bytes/,
    ],
    [
      'less inside than declared',
      { name: 'a', text: 'abc', says: { unpacked: 10 } },
      /broken.*not enough bytes/,
    ],
    [
      'another length than declared, stored',
      { name: 'a', text: 'abc', stored: true, says: { unpacked: 2 } },
      /broken/,
    ],
    [
      'no deflated data',
      { name: 'a', text: 'abc', stored: true, says: { method: 8, unpacked: 9 } },
      /broken/,
    ],
    ['data beyond the end', { name: 'a', text: 'abc', says: { packed: 5_000 } }, /broken.*overflows/],
    ['a path outside of the archive', { name: 'a', text: 'abc', says: { offset: 2 ** 31 } }, /broken/],
    ['a path without an entry', { name: 'a', text: 'abc', says: { offset: 3 } }, /broken.*header signature/],
    ['more than may be read', { name: 'a', text: 'x'.repeat(5_000) }, /unpacks to more/],
    ['encryption', { name: 'a', text: 'abc', says: { flags: 1 } }, /encrypted/],
    ['an unknown method', { name: 'a', text: 'abc', says: { method: 12 } }, /unknown method/],
  ])('%s is refused', async (_, entry, problem) => {
    for (const zip64 of [false, true]) {
      const bytes = zip([entry], { zip64 });
      await expect(texts(bytes, everything, small())).rejects.toThrow(problem);
      await expect(texts(bytes, everything, small())).rejects.toMatchObject({ kind: 'unreadable' });
    }
  });

  test('the size limit is for all entries together', async () => {
    const entries = ['a', 'b', 'c'].map((name) => ({ name, text: 'x'.repeat(800) }));
    await expect(texts(zip(entries), everything, small())).rejects.toThrow(
      /unpacks to more than may be read, at c/,
    );
  });

  test('a zip64 entry with a size beyond all memory is not unpacked', async () => {
    const bytes = zip([{ name: 'a', text: 'abc', says: { unpacked: 2 ** 50 } }], { zip64: true });
    await expect(texts(bytes)).rejects.toThrow(/unpacks to more than may be read, at a/);
  });

  test('entries that share the same data count each separately', async () => {
    const shared = { text: 'x'.repeat(900), says: { offset: 0 } };
    const bytes = zip(['a', 'b', 'c'].map((name) => ({ name, ...shared })));
    await expect(texts(bytes, everything, small())).rejects.toThrow(/unpacks to more than may be read, at c/);
  });

  test('more entries than allowed are refused before any is read, and so are more than there are', async () => {
    const entries = Array.from({ length: 11 }, (_, at) => ({ name: `${at}.csv`, text: '' }));
    await expect(texts(zip(entries), everything, small())).rejects.toThrow(/too many entries/);
    for (const zip64 of [false, true]) {
      await expect(texts(zip(entries, { zip64, count: 12 }))).rejects.toThrow(/broken/);
      await expect(texts(zip(entries, { zip64, count: 65_000 }))).rejects.toThrow(/too many entries/);
    }
  });

  test('cut and garbled archives are refused, wherever they are cut', async () => {
    for (const zip64 of [false, true]) {
      const bytes = zip([{ name: 'a.csv', text: 'SYMBOL,SERIES\n'.repeat(20) }], { zip64 });
      for (let length = 4; length < bytes.length; length++) {
        await expect(read(bytes.subarray(0, length))).rejects.toThrow(/zip archive/);
      }
    }
  });

  test('any one byte changed: the same texts come out, or the archive is refused', async () => {
    for (const zip64 of [false, true]) {
      const bytes = zip([{ name: 'a.csv', text: 'SYMBOL,SERIES\n'.repeat(20) }], { zip64 });
      const [[, text] = ['', '']] = await texts(bytes);
      for (let at = 0; at < bytes.length; at++) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] as number) ^ 0xff;
        const contents = await texts(changed).catch((error: unknown) => {
          expect(error).toMatchObject({ name: 'PipelineError', kind: 'unreadable' });
          return [];
        });
        for (const [, kept] of contents) expect(kept).toBe(text);
      }
    }
  });

  test('an archive without a CSV inside is named, and so is the bad file in one', async () => {
    await expect(read(zip([{ name: 'read.txt', text: 'hello' }]))).rejects.toThrow(
      'the zip archive contains no .csv or .dat file',
    );
    await expect(read(zip([{ name: 'b.CSV', text: 'A,B\n1,2\n' }]))).rejects.toThrow(
      /^b\.CSV in it: is not a file of a known/,
    );
  });

  const DAY =
    'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP\nABC,EQ,1,1,1,1,1,1,1,1,01-OCT-2019\n';
  const days = async (bytes: Buffer) => (await read(bytes)).map(({ day }) => day);

  test('archives in an archive are read, one level deep', async () => {
    const inner = zip([{ name: 'cm01OCT2019bhav.csv', text: DAY }]);
    const outer = zip([
      { name: 'cm01OCT2019bhav.csv.zip', text: inner },
      { name: 'cm02OCT2019bhav.csv', text: DAY.replace('01-', '02-') },
    ]);
    expect(await days(outer)).toEqual(['2019-10-01', '2019-10-02']);
    await expect(days(zip([{ name: 'all.zip', text: outer }]))).rejects.toThrow(
      'all.zip in it: cm01OCT2019bhav.csv.zip in it: is an archive within two others',
    );
  });

  test('the limits hold for an archive and those inside it together', async () => {
    const inner = zip([{ name: 'cm01OCT2019bhav.csv', text: DAY }]);
    const outer = zip(['a.zip', 'b.zip'].map((name) => ({ name, text: inner })));
    const needed = 2 * (inner.length + DAY.length);
    const readWith = (limit: { bytes: number; entries: number }) =>
      readExchangeFile('a.zip', outer, 'Asia/Kolkata', limit);
    expect(await readWith({ bytes: needed, entries: 4 })).toHaveLength(2);
    await expect(readWith({ bytes: needed - 1, entries: 4 })).rejects.toThrow(
      'b.zip in it: the zip archive unpacks to more than may be read, at cm01OCT2019bhav.csv',
    );
    await expect(readWith({ bytes: needed, entries: 3 })).rejects.toThrow(
      'b.zip in it: the zip archive has too many entries',
    );
  });

  test('what macOS adds to an archive is not read', async () => {
    const double = Buffer.from([0, 5, 22, 7, 0, 2, 0, 0]);
    const entries = [
      { name: 'day/cm01OCT2019bhav.csv', text: DAY },
      { name: '__MACOSX/day/._cm01OCT2019bhav.csv', text: double },
      { name: 'day/._other.csv', text: double },
    ];
    expect(await days(zip(entries))).toEqual(['2019-10-01']);
  });
});
