import { PipelineError } from '../../core/errors.ts';
import { countRule } from '../../extract/envelope.ts';
import { type FileSession, readCsvFile } from '../../extract/files/read-file.ts';
import { readAnswer } from '../../extract/index.ts';
import type { Extracted } from '../../extract/types.ts';
import { readTickers } from '../../load/market/stored-values.ts';
import type { KeptAnswer } from '../../load/state/answers/answers.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { type ReadAnswer, sessionAnswer, symbolsFor } from './session-answer.ts';

/** The settings with which kept answers are read. */
function readSettings(config: Context['config']) {
  // An answer that was kept was taken as complete, or came twice.
  const count = countRule(config.EOD_COUNT, true);
  return { accessKey: config.EOD_ACCESS_KEY ?? '', timeZone: config.EOD_TIMEZONE, count };
}

/** Reads a kept answer of the source with the current code. @throws PipelineError `unreadable` */
function readSourceAnswer({ config }: Context, answer: KeptAnswer): Extracted {
  return readAnswer(
    operationNamed(answer.operation),
    answer,
    { body: answer.body, contentType: answer.contentType, bytes: 0 },
    readSettings(config),
  );
}

/**
 * Creates a function that reads kept answers and files; @throws PipelineError `unreadable`, also if the file, as it is
 * read now, does not contain the session. It remembers the last file, because a file with many sessions is read for each
 * of them.
 */
export function createAnswerReader(context: Context): (answer: KeptAnswer) => Promise<ReadAnswer> {
  const { config, db } = context;
  let file: { readonly name: string; readonly sessions: readonly FileSession[] } | undefined;
  return async (answer) => {
    if (answer.file === null) return { extracted: readSourceAnswer(context, answer) };
    const name = `${answer.hash} ${answer.file}`;
    if (file?.name !== name) {
      file = { name, sessions: readCsvFile(answer.file, answer.body, config.EOD_TIMEZONE) };
    }
    const session = sessionOf(file.sessions, answer);
    if (session === undefined) throw noSession(answer);
    // A database from before they were kept has no symbols.
    return sessionAnswer(
      session,
      answer.symbols ?? (await symbolsFor(db.pool, session, await readTickers(db.pool))),
    );
  };
}

/** The session for which a kept file was loaded, among all that the file contains. */
export function sessionOf(sessions: readonly FileSession[], answer: KeptAnswer): FileSession | undefined {
  return sessions.find(
    ({ dataSet, exchange, day }) =>
      dataSet === answer.operation && exchange === answer.exchange && day === answer.from,
  );
}

function noSession({ file, exchange, from }: KeptAnswer): PipelineError {
  return new PipelineError(
    `${file}, as it is read now, has no session ${from} of ${exchange}; if that is right, import the file again by force`,
    { kind: 'unreadable' },
  );
}
