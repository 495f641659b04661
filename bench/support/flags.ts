import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Ends the process with exit code 2. */
export function exitWithUsage(message: string): never {
  console.error(message);
  process.exit(2);
}

type Options = NonNullable<ParseArgsConfig['options']>;

type FlagsOf<O extends Options> = ReturnType<typeof parseArgs<{ options: O }>>['values'];

/** Parses the flags of a bench; a mistake ends the process with exit code 2. */
export function parseFlags<O extends Options>(options: O): FlagsOf<O> {
  try {
    return parseArgs({ options }).values as FlagsOf<O>;
  } catch (error) {
    return exitWithUsage((error as Error).message);
  }
}
