import { messageOf } from '../core/errors.ts';
import type { Operation } from '../operations/operation.ts';
import { buildUrl } from './build-request.ts';
import { readAnswer } from './read.ts';
import type { SourceSettings } from './types.ts';

const SETTINGS = {
  baseUrl: 'http://source',
  accessKey: '',
  dateDialect: 'epoch',
  dateFormat: 'String',
  format: 'Json',
} as const satisfies Partial<SourceSettings>;

/** What the sample of an operation is read as, and what is wrong with it. */
export interface SampleCheck {
  /** The request that the sample answers, without a key. */
  readonly request: string | null;
  readonly rows: number;
  /** A sentence each: the request cannot be made, the answer is none, or a record is a reject. */
  readonly problems: readonly string[];
  /** Fields of the records that nothing reads. */
  readonly unknownFields: readonly string[];
}

/** Makes the request of an operation's sample and reads its answer, as the pipeline would; needs no database (pure). */
export function checkSample(operation: Operation, timeZone: string): SampleCheck {
  const { sample } = operation;
  const asked = { ...sample.asked, calledOn: sample.asked.to };
  const problems: string[] = [];
  let request: string | null = null;
  try {
    request = buildUrl({ ...SETTINGS, timeZone }, operation, asked).replace(/^.*\?accessKey=&/, '');
  } catch (error) {
    problems.push(`sample.asked is no request of it: ${messageOf(error)}`);
  }
  const text = typeof sample.answer === 'string' ? sample.answer : JSON.stringify(sample.answer);
  const body = Buffer.from(text ?? '');
  try {
    const read = readAnswer(
      operation,
      asked,
      { body, contentType: null, bytes: body.length },
      { accessKey: '', timeZone },
    );
    for (const reject of read.rejects) {
      const found = reject.problems.map(({ path, message }) => [path, message].filter(Boolean).join(' '));
      problems.push(
        `sample.answer has a record (the ${reject.position + 1}.) that is a reject: ${found.join('; ')}`,
      );
    }
    const rows = read.batches.reduce((sum, batch) => sum + batch.rows.length, 0);
    if (rows === 0) problems.push('sample.answer has no record that would be stored: give one of the source');
    return { request, rows, problems, unknownFields: read.unknownFields };
  } catch (error) {
    problems.push(`sample.answer is no answer: ${messageOf(error)}`);
    return { request, rows: 0, problems, unknownFields: [] };
  }
}
