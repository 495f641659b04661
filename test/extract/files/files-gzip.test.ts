import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { isImportName, readExchangeFile } from '../../../src/extract/files/read-exchange-file.ts';
import { newUnpackLimit } from '../../../src/extract/files/unpack.ts';
import { zip } from '../../support/zip.ts';

const DAY =
  'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP\nABC,EQ,1,1,1,1,1,1,1,1,01-OCT-2019\n';
const read = (name: string, bytes: Buffer, limit = newUnpackLimit()) =>
  readExchangeFile(name, bytes, 'Asia/Kolkata', limit);

test('a file that gzip has compressed is kept as it is unpacked, under its name without .gz', async () => {
  const [plain] = await read('cm01OCT2019bhav.csv', Buffer.from(DAY));
  const [unpacked] = await read('old/cm01OCT2019bhav.csv.GZ', gzipSync(DAY));
  expect(plain?.rows.length).toBe(1);
  expect(unpacked).toEqual(plain);
  // Several pieces, one after the other, are one file.
  const pieces = Buffer.concat([gzipSync(DAY.slice(0, 50)), gzipSync(DAY.slice(50))]);
  expect(await read('cm01OCT2019bhav.csv.gz', pieces)).toEqual([plain]);
});

test('gzip and zip archives may contain each other, one level deep', async () => {
  const archive = zip([{ name: 'cm01OCT2019bhav.csv', text: DAY }]);
  const compressed = zip([{ name: 'cm01OCT2019bhav.csv.gz', text: gzipSync(DAY) }]);
  for (const bytes of [gzipSync(archive), compressed]) {
    expect((await read('a.zip', bytes)).map(({ day, content }) => [day, content.name])).toEqual([
      ['2019-10-01', 'cm01OCT2019bhav.csv'],
    ]);
  }
  const twice = zip([{ name: 'a.zip.gz', text: gzipSync(zip([{ name: 'b.zip', text: archive }])) }]);
  await expect(read('a.zip', twice)).rejects.toThrow('b.zip in it: is an archive within two others');
  // gzip in between does not allow more.
  const inner = zip([{ name: 'b.zip.gz', text: gzipSync(archive) }]);
  await expect(read('a.zip', zip([{ name: 'a.zip', text: inner }]))).rejects.toThrow(
    'b.zip.gz in it: is an archive within two others',
  );
});

test.each([
  [
    'cut short',
    gzipSync(DAY).subarray(0, 60),
    'the gzip data is broken or cut short: unexpected end of file',
  ],
  [
    'with a wrong checksum',
    damaged(gzipSync(DAY)),
    /the gzip data is broken or cut short: incorrect data check/,
  ],
  ['compressed twice', gzipSync(gzipSync(DAY)), 'is compressed with gzip more than once; unpack it'],
])('data %s loads nothing', async (_, bytes, problem) => {
  await expect(read('x.csv.gz', bytes)).rejects.toThrow(problem);
});

test.each([
  ['compressed with xz', Buffer.from('fd377a585a000004e6d6b446', 'hex')],
  ['compressed with bzip2', Buffer.from('BZh91AY&SY')],
  ['compressed with zstd', Buffer.from('28b52ffd2400', 'hex')],
  ['a 7z archive', Buffer.from('377abcaf271c0004', 'hex')],
  ['a rar archive', Buffer.from('Rar!\u001a\u0007')],
  ['a tar archive', Buffer.concat([Buffer.alloc(257), Buffer.from('ustar\u000000')])],
  ['a PDF', Buffer.from('%PDF-1.7\n')],
  ['an Excel workbook', Buffer.from('d0cf11e0a1b11ae1', 'hex')],
])('what is %s is named as that, also inside gzip', async (description, bytes) => {
  for (const data of [bytes, gzipSync(bytes)])
    await expect(read('x.csv', data)).rejects.toThrow(
      new RegExp(`^is ${description}.*, which is not read; \\w+`),
    );
});

function damaged(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  // The checksum is in the four bytes before the length, which are the last.
  copy.writeUInt32LE(copy.readUInt32LE(copy.length - 8) ^ 1, copy.length - 8);
  return copy;
}

test('a small file that unpacks to far more than may be read is refused, in an archive too', async () => {
  const bomb = gzipSync(Buffer.alloc(10_000_000, 32));
  const limit = () => ({ bytes: 1_000_000, entries: 10 });
  const problem = 'the gzip data unpacks to more than may be read';
  await expect(read('x.csv.gz', bomb, limit())).rejects.toThrow(problem);
  await expect(read('x.zip', zip([{ name: 'x.csv.gz', text: bomb }]), limit())).rejects.toThrow(problem);
});

test('files are found by names with .gz too', () => {
  const names = [
    'a.csv.gz',
    'A.DAT.GZ',
    'a.zip.gz',
    'a.csv',
    'a.tar.gz',
    'a.gz',
    '.a.csv.gz',
    'a.csv.gz.part',
  ];
  expect(names.filter(isImportName)).toEqual(['a.csv.gz', 'A.DAT.GZ', 'a.zip.gz', 'a.csv']);
});
