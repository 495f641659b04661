import type { Command } from 'commander';
import type { Lifecycle } from './lifecycle.ts';

/** What every command gets: how to open and close things, and where its exit code goes. */
export interface Cli {
  readonly life: Lifecycle;
  exitCode: number;
}

/** Adds a command to the program; every file of a command exports one. */
export type AddCommand = (program: Command, cli: Cli) => Command;

/** The examples at the end of a command's help. */
export function examples(...lines: string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
}
