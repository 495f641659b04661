import { usageError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { allowedText, type Operation, type RequestOption, spelledOption } from '../operations/operation.ts';
import { operations } from '../operations/registry.ts';

/** A flag made from what the operations declare, e.g. `--nature-of-report <value>`. */
export interface RequestFlag {
  readonly param: string;
  readonly flag: string;
  readonly description: string;
}

/** One flag for each request option any operation declares; options of one name share it (pure). */
export function requestFlags(): RequestFlag[] {
  const params = [
    ...new Set(operations.flatMap((operation) => optionsOf(operation)).map((one) => one.param)),
  ];
  return params.map((param) => {
    const declaring = operations.filter((operation) => declared(operation, param) !== undefined);
    const meanings = declaring.map((operation) => {
      const option = declared(operation, param);
      const allowed = option === undefined ? null : allowedText(option);
      return `${option?.meaning}${allowed === null ? '' : ` (${allowed})`}`;
    });
    const names = declaring.map((operation) => operation.name).join(', ');
    return {
      param,
      flag: `--${param.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} <value>`,
      description: `${[...new Set(meanings)].join(' / ')} [${names}]`,
    };
  });
}

/**
 * The request options of the chosen operations, from `--param name=value` and the flags of their own.
 * A value must be known to every chosen operation that has the option.
 *
 * @throws PipelineError `usage` for unknown names and values, with the nearest known one.
 */
export function parseRequestOptions(
  chosen: readonly Operation[],
  pairs: readonly string[],
  flags: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const options: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1 || at === pair.length - 1) throw usageError(`--param: "${pair}" is not name=value`);
    const param = knownParam(chosen, pair.slice(0, at));
    options[param] = checkedValue(chosen, param, pair.slice(at + 1));
  }
  for (const { param } of requestFlags()) {
    const value = flags[param];
    if (typeof value !== 'string') continue;
    options[knownParam(chosen, param)] = checkedValue(chosen, param, value);
  }
  return options;
}

function optionsOf(operation: Operation): readonly RequestOption[] {
  return operation.request.options;
}

function declared(operation: Operation, param: string): RequestOption | undefined {
  return optionsOf(operation).find((option) => option.param === param);
}

function knownParam(chosen: readonly Operation[], name: string): string {
  const params = [...new Set(chosen.flatMap(optionsOf).map((option) => option.param))];
  const found = params.find((param) => param.toLowerCase() === name.toLowerCase());
  if (found !== undefined) return found;
  const names = chosen.map((operation) => operation.name).join(', ');
  if (params.length === 0) throw usageError(`${names} has no request option "${name}", nor any other`);
  const guess = nearest(name, params);
  throw usageError(
    `no chosen operation (${names}) has a request option "${name}"${guess === null ? '' : `; did you mean ${guess}?`} (known: ${params.join(', ')})`,
  );
}

function checkedValue(chosen: readonly Operation[], param: string, value: string): string {
  let spelled = value;
  for (const operation of chosen) {
    const option = declared(operation, param);
    if (option === undefined) continue;
    const found = spelledOption(option, value);
    if (found === null) throw usageError(`${param}: ${operation.name} ${refusal(option, value)}`);
    spelled = found;
  }
  return spelled;
}

function refusal(option: RequestOption, value: string): string {
  const guess = nearest(value, option.values ?? []);
  const hint = guess === null ? '' : `; did you mean ${guess}?`;
  return `does not know "${value}"${hint} (known: ${allowedText(option)})`;
}
