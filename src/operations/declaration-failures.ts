import { messageOf, PipelineError } from '../core/errors.ts';
import { type Operation, tablesFilledBy } from './operation.ts';

/** A function of a declaration has failed. The message names operation, file and function. */
export class DeclarationError extends PipelineError {}

const named = new WeakSet<object>();

/** Makes the functions of a declaration fail with a `DeclarationError`, whatever they throw. */
export function nameFailures(operation: Operation, file: string): void {
  const name = (owner: object, member: string, path: string) => {
    const own: unknown = Reflect.get(owner, member);
    if (typeof own !== 'function' || named.has(own)) return;
    const calling = (...values: unknown[]): unknown => {
      try {
        return Reflect.apply(own, owner, values);
      } catch (error) {
        const problem = messageOf(error).slice(0, 200);
        throw new DeclarationError(`${path} of ${operation.name} fails (${problem}), see ${file}`, {
          kind: 'usage',
          cause: error,
        });
      }
    };
    named.add(calling);
    Reflect.set(owner, member, calling);
  };
  name(operation.request, 'datedWhen', 'request.datedWhen');
  name(operation.windows, 'questions', 'windows.questions');
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
