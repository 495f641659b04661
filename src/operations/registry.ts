import { readdirSync } from 'node:fs';
import { usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import type { Operation } from './operation.ts';
import type { TableDefinition } from './table.ts';

/**
 * Every operation, in alphabetical order: the files of this folder that are named like one (`Get….ts`).
 * A new file needs no other line anywhere.
 */
export const operations: readonly Operation[] = await Promise.all(
  readdirSync(import.meta.dirname)
    .filter((name) => /^Get\w+\.(ts|js)$/.test(name))
    .sort()
    .map(async (name) => {
      const module = (await import(new URL(name, import.meta.url).href)) as { default: Operation };
      return module.default;
    }),
);

const byName = new Map(operations.map((operation) => [operation.name.toLowerCase(), operation]));

/** Every table of the schema `market`, each once. */
export const tables: readonly TableDefinition[] = [
  ...new Set(operations.flatMap((operation) => operation.shapes.map((shape) => shape.table))),
];

/** The operations that fill any of these tables. */
export function operationsFilling(filled: readonly TableDefinition[]): Operation[] {
  return operations.filter(({ shapes }) => shapes.some(({ table }) => filled.includes(table)));
}

/**
 * The operation of this name, without regard to case.
 *
 * @throws PipelineError `usage` with the nearest known name.
 */
export function operationNamed(name: string): Operation {
  const found = byName.get(name.toLowerCase());
  if (found !== undefined) return found;
  const known = operations.map((operation) => operation.name);
  throw usageError(`unknown operation "${name}"${didYouMean(name, known)}`, 'list_operations');
}
