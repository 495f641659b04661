import type { Operation } from './operation.ts';

// The names of the parameters of a request, for the code that builds one and the code that reads it.

/** How days are written: as seconds, or as 2025-02-27. For the latter, the parameters of a range have other names. */
export type DateDialect = 'epoch' | 'iso-date';

/** The parameter that names instruments; null if none can be named. */
export function instrumentsParam({ request }: Pick<Operation, 'request'>): string | null {
  return { none: null, one: 'instrumentIdentifier', many: 'instrumentIdentifiers' }[request.instruments];
}

/** The parameters that say which days: none, one, or the first and the last. */
export function dateParams({ request }: Pick<Operation, 'request'>, dialect: DateDialect): readonly string[] {
  const names = {
    none: [],
    day: ['date'],
    range: dialect === 'epoch' ? ['from', 'to'] : ['fromDate', 'toDate'],
  };
  return names[request.dates];
}

/** All parameters that a request may have. */
export function parameterNames(operation: Operation, dialects: readonly DateDialect[]): Set<string> {
  const { options, dTFormat } = operation.request;
  const instruments = instrumentsParam(operation);
  return new Set([
    'accessKey',
    'exchange',
    ...dialects.flatMap((dialect) => dateParams(operation, dialect)),
    ...options.map(({ param }) => param),
    ...(instruments === null ? [] : [instruments]),
    ...(dTFormat ? ['dTFormat'] : []),
    'format',
  ]);
}
