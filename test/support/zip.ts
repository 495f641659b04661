import { crc32, deflateRawSync } from 'node:zlib';

/** A file in an archive. */
export interface Entry {
  readonly name: string;
  readonly text: string | Buffer;
  readonly stored?: boolean;
  /** What the directory says instead of the truth. */
  readonly says?: {
    readonly crc?: number;
    readonly packed?: number;
    readonly unpacked?: number;
    readonly flags?: number;
    readonly method?: number;
    readonly offset?: number;
  };
}

const BIG = 0xffffffff;

/** A zip archive as the ZIP format describes it; with `zip64`, all sizes are in the 64-bit fields. */
export function zip(
  entries: readonly Entry[],
  { comment = '', zip64 = false, count = entries.length } = {},
): Buffer {
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
    const sizes = [says.unpacked ?? data.length, says.packed ?? packed.length, says.offset ?? offset];
    const extra = zip64 ? Buffer.concat([numbers(2, 0x0001, 24), numbers(8, ...sizes)]) : Buffer.alloc(0);
    const [unpackedSize = 0, packedSize = 0, at = 0] = zip64 ? [BIG, BIG, BIG] : sizes;
    const entry = Buffer.alloc(46 + name.length);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(says.flags ?? 0, 8);
    entry.writeUInt16LE(says.method ?? (stored ? 0 : 8), 10);
    entry.writeUInt32LE(says.crc ?? crc32(data), 16);
    entry.writeUInt32LE(packedSize, 20);
    entry.writeUInt32LE(unpackedSize, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt16LE(extra.length, 30);
    entry.writeUInt32LE(at, 42);
    entry.write(name, 46);
    bodies.push(local, packed);
    directory.push(entry, extra);
    offset += local.length + packed.length;
  }
  const size = Buffer.concat(directory).length;
  const end64 = Buffer.concat([
    numbers(4, 0x06064b50),
    numbers(8, 44),
    numbers(2, 45, 45),
    numbers(4, 0, 0),
    numbers(8, count, count, size, offset),
    numbers(4, 0x07064b50, 0),
    numbers(8, offset + size),
    numbers(4, 1),
  ]);
  const end = Buffer.alloc(22 + comment.length);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(zip64 ? 0xffff : count, 10);
  end.writeUInt32LE(zip64 ? BIG : offset, 16);
  end.writeUInt16LE(comment.length, 20);
  end.write(comment, 22);
  return Buffer.concat([...bodies, ...directory, ...(zip64 ? [end64] : []), end]);
}

/** Numbers in the order of a zip file: the lowest byte first. */
function numbers(bytes: 2 | 4 | 8, ...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(bytes * values.length);
  for (const [at, value] of values.entries()) {
    if (bytes === 8) buffer.writeBigUInt64LE(BigInt(value), at * 8);
    else buffer.writeUIntLE(value, at * bytes, bytes);
  }
  return buffer;
}
