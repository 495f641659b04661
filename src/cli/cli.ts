import { stripVTControlCharacters } from 'node:util';
import type { Command } from 'commander';
import type { Config } from '../core/config.ts';
import { type Environment, readEnvironment } from '../core/environment.ts';
import type { Lifecycle } from './lifecycle.ts';

/** Where a command prints to. */
interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** What every command gets: its surroundings, how to open and close things, and where its exit code goes. */
export interface Cli {
  /** What the shell sets. */
  readonly env: Environment;
  /** Folder of `.env` and `.eod/`, and of relative paths. */
  readonly cwd: string;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly life: Lifecycle;
  exitCode: number;
  /** Whether stdout has its JSON document already. */
  printedJson?: boolean;
}

/** What a file of commands exports: what gives each its arguments, options, examples and action. */
export type Commands = Readonly<Record<string, (command: Command, cli: Cli) => void | Promise<void>>>;

/** The surroundings of this process. */
export function processCli(life: Lifecycle): Cli {
  const { env, stdout, stderr } = process;
  return { env, cwd: process.cwd(), stdout, stderr, life, exitCode: 0 };
}

/** Exit codes of `eod`: the work is done, some of it failed, the command or a setting is wrong. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** The flag of all commands that can print a document for programs. */
export interface JsonFlag {
  readonly json?: boolean;
}

/** A result, on stdout. Bold only on a terminal. */
export function print(cli: Cli, text: string): void {
  const plain = cli.stdout.isTTY !== true || (cli.env.NO_COLOR ?? '') !== '';
  cli.stdout.write(`${plain ? stripVTControlCharacters(text) : text}\n`);
}

/** Exactly one JSON document, on stdout. */
export function printJson(cli: Cli, document: unknown): void {
  cli.printedJson = true;
  cli.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}

/** Something to know while waiting, on stderr: stdout is for results. */
export function logStderr(cli: Cli, text: string): void {
  cli.stderr.write(`${text}\n`);
}

/** The settings. @throws PipelineError `usage` that lists every problem. */
export async function loadSettings(cli: Cli): Promise<Config> {
  const { loadConfig, unknownSettings } = await import('../core/config.ts');
  const env = readEnvironment(cli.env, cli.cwd);
  const config = loadConfig(env);
  for (const { name } of unknownSettings(env)) logStderr(cli, `eod: ${name} is no setting and is ignored`);
  return config;
}
