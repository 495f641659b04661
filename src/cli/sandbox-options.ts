import { Option } from 'commander';
import { sandboxFlags } from '../sandbox/flags.ts';

/** A fixed port, so that EOD_BASE_URL can stay the same. */
const PORT = '8090';

/** The flags of `eod sandbox`. */
export const sandboxOptions: readonly Option[] = sandboxFlags.map(optionOf);

function optionOf({
  flag,
  description,
  default: fallback,
  repeatable,
}: (typeof sandboxFlags)[number]): Option {
  const option = new Option(flag, description);
  if (repeatable === true) option.argParser((value, before: string[] = []) => [...before, value]);
  if (option.long === '--port') option.default(PORT);
  else if (fallback !== undefined) option.default(fallback);
  return option;
}
