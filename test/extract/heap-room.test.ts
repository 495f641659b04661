import { describe, expect, test } from 'vitest';
import { checkHeapRoom } from '../../src/extract/heap-room.ts';

describe('a body', () => {
  const MB = 1024 * 1024;
  const csv = `A,B,C,D\n${'1.25,2,3,text\n'.repeat(80_000)}`;
  const json = JSON.stringify(Array.from({ length: 40_000 }, () => ({ A: 1.25, B: 2, C: 3, D: 'text' })));
  const xml = `<List>${'<Record><A>1.25</A><B>2</B><C>3</C></Record>'.repeat(30_000)}</List>`;

  test.each([
    ['CSV', csv],
    ['JSON', json],
    ['XML', xml],
  ])(
    'in %s is refused if its values would take too much of the heap; the message names the setting',
    (_, text) => {
      const body = Buffer.from(text);
      expect(() => checkHeapRoom(body, 100 * MB)).not.toThrow();
      expect(() => checkHeapRoom(body, 16 * MB)).toThrow(
        /^the response is too large: 2 MB, which take some \d+ MB .* at most 10 MB .* process \(16 MB\); NODE_OPTIONS=--max-old-space-size=\d+ /,
      );
    },
  );

  test('is neither counted if it fits in any case, nor refused for long texts', () => {
    expect(() => checkHeapRoom(Buffer.alloc(100_000, ','), 16 * MB)).not.toThrow();
    expect(() => checkHeapRoom(Buffer.alloc(2_000_000, 'x'), 16 * MB)).not.toThrow();
  });
});
