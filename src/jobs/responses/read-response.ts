import { PipelineError } from '../../core/errors.ts';
import { countRule } from '../../extract/envelope.ts';
import { type FilePart, readCsvFile } from '../../extract/files/read-file.ts';
import { readResponse } from '../../extract/index.ts';
import type { Extracted } from '../../extract/types.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { KeptResponse } from '../../state/responses/responses.ts';
import type { Context } from '../context.ts';
import { partResponse, type ReadResponse } from './session-response.ts';

/** The settings with which kept responses are read. */
function readSettings(config: Context['config']) {
  // A response that was kept was taken as complete, or came twice.
  const count = countRule(config.EOD_COUNT, true);
  return { accessKey: config.EOD_ACCESS_KEY ?? '', timeZone: config.EOD_TIMEZONE, count };
}

/** Reads a kept response of the source with the current code. @throws PipelineError `unreadable` */
function readSourceResponse({ config }: Context, response: KeptResponse): Extracted {
  return readResponse(
    operationNamed(response.operation),
    response,
    { body: response.body, contentType: response.contentType, bytes: 0 },
    readSettings(config),
  );
}

/**
 * Creates a function that reads kept responses and files; @throws PipelineError `unreadable`, also if the file, as it
 * is read now, does not contain the part. It remembers the last file, because a file with many parts is
 * read for each of them.
 */
export function createResponseReader(context: Context): (response: KeptResponse) => Promise<ReadResponse> {
  const { config } = context;
  let file: { readonly name: string; readonly parts: readonly FilePart[] } | undefined;
  return async (response) => {
    if (response.file === null) return { extracted: readSourceResponse(context, response) };
    const name = `${response.hash} ${response.file}`;
    if (file?.name !== name) {
      file = { name, parts: readCsvFile(response.file, response.body, config.EOD_TIMEZONE) };
    }
    const part = findPart(file.parts, response);
    if (part === undefined) throw noPart(response);
    return partResponse(part, response.symbols ?? {});
  };
}

/**
 * The part for which a kept file was loaded, among all that the file contains; a list is one, whatever its days.
 */
function findPart(parts: readonly FilePart[], response: KeptResponse): FilePart | undefined {
  return parts.find(
    ({ dataSet, exchange, day, rank }) =>
      dataSet === response.operation &&
      exchange === response.exchange &&
      (rank === null || day === response.from),
  );
}

function noPart({ file, exchange, from }: KeptResponse): PipelineError {
  return new PipelineError(
    `${file}, as it is read now, has no trading day ${from} of ${exchange}; if that is right, import the file again by force`,
    { kind: 'unreadable' },
  );
}
