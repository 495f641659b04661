import { crc32, deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readBhavFile } from '../../src/extract/files/read-file.ts';
import { isZip, unzip } from '../../src/extract/files/zip.ts';

interface Entry {
  readonly name: string;
  readonly text: string | Buffer;
  readonly stored?: boolean;
  /** What the directory says instead of the truth. */
  readonly says?: {
    readonly crc?: number;
    readonly unpacked?: number;
    readonly flags?: number;
    readonly method?: number;
  };
}

/** A zip archive, made by the book. */
function zip(entries: readonly Entry[], comment = ''): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, text, stored = false, says = {} } of entries) {
    const data = typeof text === 'string' ? Buffer.from(text) : text;
    const packed = stored ? data : deflateRawSync(data);
    const local = Buffer.alloc(30 + name.length);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    local.write(name, 30);
    const entry = Buffer.alloc(46 + name.length);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(says.flags ?? 0, 8);
    entry.writeUInt16LE(says.method ?? (stored ? 0 : 8), 10);
    entry.writeUInt32LE(says.crc ?? crc32(data), 16);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(says.unpacked ?? data.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(offset, 42);
    entry.write(name, 46);
    bodies.push(local, packed);
    directory.push(entry);
    offset += local.length + packed.length;
  }
  const end = Buffer.alloc(22 + comment.length);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(offset, 16);
  end.writeUInt16LE(comment.length, 20);
  end.write(comment, 22);
  return Buffer.concat([...bodies, ...directory, end]);
}

const everything = () => true;
const texts = (bytes: Buffer, wanted = everything as (name: string) => boolean) =>
  [...unzip(bytes, wanted)].map(({ name, data }) => [name, data.toString()]);

describe('zip archives', () => {
  test('deflated and stored entries, a comment at the end, any name', () => {
    const bytes = zip(
      [
        { name: 'a.csv', text: 'x'.repeat(10_000) },
        { name: '../../b.csv', text: 'stored', stored: true },
        { name: 'empty/', text: '', stored: true },
      ],
      'made by hand',
    );
    expect(isZip(bytes)).toBe(true);
    expect(texts(bytes)).toEqual([
      ['a.csv', 'x'.repeat(10_000)],
      ['../../b.csv', 'stored'],
      ['empty/', ''],
    ]);
    expect(texts(bytes, (name) => name === 'a.csv')).toHaveLength(1);
  });

  test.each<[string, Entry, RegExp]>([
    ['a wrong checksum', { name: 'a', text: 'abc', says: { crc: 1 } }, /broken/],
    [
      'more inside than told (a bomb)',
      { name: 'a', text: 'x'.repeat(1_000_000), says: { unpacked: 10 } },
      /broken/,
    ],
    ['less inside than told', { name: 'a', text: 'abc', says: { unpacked: 10 } }, /broken/],
    ['more than may be read', { name: 'a', text: 'x'.repeat(5_000) }, /unpacks to more/],
    ['encryption', { name: 'a', text: 'abc', says: { flags: 1 } }, /encrypted/],
    ['an unknown method', { name: 'a', text: 'abc', says: { method: 12 } }, /unknown way/],
  ])('%s is refused', (_, entry, problem) => {
    expect(() => [...unzip(zip([entry]), everything, 2_000)]).toThrow(problem);
  });

  test('the size limit is for all entries together', () => {
    const entries = ['a', 'b', 'c'].map((name) => ({ name, text: 'x'.repeat(800) }));
    expect(() => [...unzip(zip(entries), everything, 2_000)]).toThrow(
      /unpacks to more than may be read, at c/,
    );
  });

  test('cut and garbled archives are refused, wherever they are cut', () => {
    const bytes = zip([{ name: 'a.csv', text: 'SYMBOL,SERIES\n'.repeat(20) }]);
    for (let length = 4; length < bytes.length; length++) {
      expect(() => readBhavFile('a.zip', bytes.subarray(0, length), 'Asia/Kolkata')).toThrow(/zip archive/);
    }
  });

  test('an archive without a CSV inside is named, and so is the bad file in one', () => {
    expect(() => readBhavFile('a.zip', zip([{ name: 'read.txt', text: 'hello' }]), 'Asia/Kolkata')).toThrow(
      'the zip archive holds no .csv file',
    );
    expect(() => readBhavFile('a.zip', zip([{ name: 'b.CSV', text: 'A,B\n1,2\n' }]), 'Asia/Kolkata')).toThrow(
      /^b\.CSV in it: is no bhav copy/,
    );
  });

  const DAY =
    'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP\nABC,EQ,1,1,1,1,1,1,1,1,01-OCT-2019\n';
  const days = (bytes: Buffer) => readBhavFile('a.zip', bytes, 'Asia/Kolkata').map(({ day }) => day);

  test('archives in an archive are read, one level deep', () => {
    const inner = zip([{ name: 'cm01OCT2019bhav.csv', text: DAY }]);
    const outer = zip([
      { name: 'cm01OCT2019bhav.csv.zip', text: inner },
      { name: 'cm02OCT2019bhav.csv', text: DAY.replace('01-', '02-') },
    ]);
    expect(days(outer)).toEqual(['2019-10-01', '2019-10-02']);
    expect(() => days(zip([{ name: 'all.zip', text: outer }]))).toThrow(
      'all.zip in it: cm01OCT2019bhav.csv.zip in it: is an archive in an archive in an archive',
    );
  });

  test('what macOS adds to an archive is not read', () => {
    const double = Buffer.from([0, 5, 22, 7, 0, 2, 0, 0]);
    const made = [
      { name: 'day/cm01OCT2019bhav.csv', text: DAY },
      { name: '__MACOSX/day/._cm01OCT2019bhav.csv', text: double },
      { name: 'day/._other.csv', text: double },
    ];
    expect(days(zip(made))).toEqual(['2019-10-01']);
  });
});
