import { messageOf, PipelineError } from '../core/errors.ts';
import { type Operation, tablesFilledBy } from './operation.ts';

/** A function of a declaration has failed. The message names operation, file and function. */
export class DeclarationError extends PipelineError {}

const named = new WeakSet<object>();

/**
 * Makes the functions of a declaration fail with a `DeclarationError`, whatever they throw, and if the questions of a day
 * are none.
 *
 * @param returnedProblem says what is wrong with what `windows.questions` has returned; null if nothing is.
 */
export function nameFailures(
  operation: Operation,
  file: string,
  returnedProblem: (per: Operation['windows']['per'], found: unknown) => string | null,
): void {
  const failed = (path: string, problem: string, cause?: unknown) =>
    new DeclarationError(`${path} of ${operation.name} ${problem}, see ${file}`, { kind: 'usage', cause });
  const name = (
    owner: object,
    member: string,
    path: string,
    problemOf: (found: unknown) => string | null = () => null,
  ) => {
    const own: unknown = Reflect.get(owner, member);
    if (typeof own !== 'function' || named.has(own)) return;
    const calling = (...values: unknown[]): unknown => {
      let found: unknown;
      try {
        found = Reflect.apply(own, owner, values);
      } catch (error) {
        throw failed(path, `fails (${messageOf(error).slice(0, 200)})`, error);
      }
      const problem = problemOf(found);
      if (problem !== null) throw failed(path, problem);
      return found;
    };
    named.add(calling);
    Reflect.set(owner, member, calling);
  };
  name(operation.request, 'datedWhen', 'request.datedWhen');
  const { windows } = operation;
  name(windows, 'questions', 'windows.questions', (found) => returnedProblem(windows.per, found));
  for (const [at, shape] of operation.shapes.entries())
    name(shape, 'contradiction', `shapes[${at}].contradiction`);
  const tables = tablesFilledBy(operation).map(({ name, fields }) => ({ path: name, fields }));
  const also = operation.also === undefined ? [] : [{ path: 'also', fields: operation.also.fields }];
  for (const { path, fields } of [...tables, ...also]) {
    for (const field of fields) {
      for (const member of ['value', 'workOut']) name(field, member, `${member} of ${path}.${field.column}`);
    }
  }
}
