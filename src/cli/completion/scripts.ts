import type { CompletedCommand, Values } from './model.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Quotes a text as one word of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** The first sentence of a description without examples and choices: shells show it beside each word. */
const short = (text: string) =>
  (text.split(/\.$|\. (?=[A-Z])|;| \(| \[|,? e\.g\. /)[0] ?? text).replace(/\s+/g, ' ');

/** Returns a script that completes the commands, options and values of the program. */
export function completionScript(
  shell: Shell,
  commands: readonly CompletedCommand[],
  version: string,
): string {
  const lines = { bash: bashLines, zsh: zshLines, fish: fishLines }[shell](commands);
  const about = `# Completion of eod ${version} for ${shell}; written by "eod completion ${shell}". Write it again after an update.`;
  return [...(shell === 'zsh' ? ['#compdef eod'] : []), about, ...lines, ''].join('\n');
}

const WORDS = 'words';

/** The values to complete, as assignments in bash. */
function bashValues({ words, list, files }: Values): string {
  return [
    `${WORDS}=${quoted(words.join(' '))}`,
    ...(list ? ['list=1'] : []),
    ...(files ? ['files=1'] : []),
  ].join('; ');
}

function bashLines(commands: readonly CompletedCommand[]): string[] {
  const parents = commands.filter(({ path, subcommands }) => path !== '' && subcommands.length > 0);
  const withValue = commands.flatMap(({ path, options }) =>
    options.flatMap(({ name, value }) => (value === null ? [] : [{ key: `${path} ${name}`, value }])),
  );
  return [
    '_eod() {',
    `  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' at word words='' list='' files='' start=''`,
    '  # The = of --flag=value is a word of its own, unless COMP_WORDBREAKS lacks it.',
    `  if [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; elif [[ $cur == = ]]; then cur=''`,
    `  elif [[ $cur == --*=* ]]; then prev=\${cur%%=*}; start=$prev=; cur=\${cur#*=}; fi`,
    '  for ((at = 1; at < COMP_CWORD; at++)); do',
    `    word=\${COMP_WORDS[at]}`,
    '    case $word in -* | =) continue ;; esac',
    '    if [[ -z $path ]]; then path=$word; continue; fi',
    `    case "$path $word" in ${parents.flatMap(({ path, subcommands }) => subcommands.map(({ name }) => quoted(`${path} ${name}`))).join(' | ')}) path="$path $word" ;; esac`,
    '    break',
    '  done',
    '  COMPREPLY=()',
    '  case "$path $prev" in',
    ...withValue.map(({ key, value }) => `    ${quoted(key)}) ${bashValues(value)} ;;`),
    '    *)',
    '      case $path in',
    ...commands.map(({ path, subcommands, options, argument }) => {
      const names = options.map(({ name }) => name).join(' ');
      const values = argument ?? { words: [], list: false, files: false };
      const first = bashValues({
        ...values,
        words: [...subcommands.map(({ name }) => name), ...values.words],
      });
      return `        ${quoted(path)}) if [[ $cur == -* ]]; then words=${quoted(names)}; else ${first}; fi ;;`;
    }),
    '      esac ;;',
    '  esac',
    `  if [[ -n $list && $cur == *,* ]]; then start+=\${cur%,*},; cur=\${cur##*,}; fi`,
    '  COMPREPLY=($(compgen -W "$words" -P "$start" -- "$cur"))',
    '  if [[ -n $files ]]; then compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -P "$start" -- "$cur")); fi',
    '}',
    'complete -F _eod eod',
  ];
}

/** The action that completes a value, in the notation of zsh's `_arguments`. */
function zshAction({ words, list, files }: Values): string {
  if (words.length > 0) return list ? `_sequence compadd - ${words.join(' ')}` : `(${words.join(' ')})`;
  return files ? '_files' : ' ';
}

/** Escapes the characters that have a meaning in a specification of `_arguments`. */
const zshText = (text: string) => short(text).replace(/[\\:[\]]/g, (letter) => `\\${letter}`);

function zshLines(commands: readonly CompletedCommand[]): string[] {
  const functionOf = (path: string) => `_eod${path === '' ? '' : `_${path.replace(/\W/g, '_')}`}`;
  const functions = commands.flatMap(({ path, subcommands, options, argument }) => {
    const specs = options.map(({ name, description, value }) => {
      const flag = `${value === null ? name : `${name}=`}[${zshText(description)}]`;
      return quoted(`*${flag}${value === null ? '' : `:value:${zshAction(value)}`}`);
    });
    const rest =
      subcommands.length > 0
        ? ["'1: :->command'", "'*:: :->rest'"]
        : argument === null
          ? []
          : [quoted(`*:argument:${zshAction(argument)}`)];
    const body = [`  _arguments -C ${[...specs, ...rest].join(' \\\n    ')}`];
    if (subcommands.length > 0) {
      const names = subcommands.map(({ name, description }) => quoted(`${name}:${short(description)}`));
      body.unshift('  local state line context curcontext=$curcontext; typeset -A opt_args');
      body.push(
        '  case $state in',
        `    command) local -a names=(${names.join(' ')}); _describe command names${argument === null || argument.words.length === 0 ? '' : `; compadd - ${argument.words.join(' ')}`} ;;`,
        '    rest) case $line[1] in',
      );
      for (const { name } of subcommands) {
        body.push(`      ${name}) ${functionOf(`${path} ${name}`.trim())} ;;`);
      }
      // What follows is no verb but an argument of the command itself.
      if (argument !== null) {
        const own = [...specs, quoted(`*:argument:${zshAction(argument)}`)];
        body.push(`      *) _arguments ${own.join(' \\\n        ')} ;;`);
      }
      body.push('    esac ;;', '  esac');
    }
    return [`${functionOf(path)}() {`, ...body, '}'];
  });
  // Autoloaded from fpath, the file is the function itself; sourced, it registers the function.
  return [...functions, 'if [[ $funcstack[1] == _eod ]]; then _eod "$@"; else compdef _eod eod; fi'];
}

function fishLines(commands: readonly CompletedCommand[]): string[] {
  const lines = [
    'function __eod_path',
    '    set -l path',
    '    for word in (commandline -opc)[2..-1]',
    "        string match -q -- '-*' $word; and continue",
    '        if test (count $path) -eq 0',
    '            set path $word',
    '        else',
    '            contains -- "$path $word" $__eod_subcommands; and set path "$path $word"',
    '            break',
    '        end',
    '    end',
    '    test "$path" = "$argv[1]"',
    'end',
    `set -g __eod_subcommands ${commands.flatMap(({ path }) => (path.includes(' ') ? [quoted(path)] : [])).join(' ')}`,
    'complete -c eod -f',
  ];
  const add = (path: string, rest: string) =>
    lines.push(`complete -c eod -n ${quoted(`__eod_path ${quoted(path)}`)} ${rest}`);
  const valuesOf = ({ words, list, files }: Values) => {
    const from = list
      ? quoted(`(__fish_complete_list , 'printf "%s\\n" ${words.join(' ')}')`)
      : quoted(words.join(' '));
    return `${files ? '-F' : ''}${words.length === 0 ? '' : ` -a ${from}`}`.trim();
  };
  for (const { path, subcommands, options, argument } of commands) {
    for (const { name, description } of subcommands) add(path, `-a ${name} -d ${quoted(short(description))}`);
    for (const { name, description, value } of options) {
      const takes = value === null ? '' : `${value.files ? '-r' : '-x'} ${valuesOf(value)}`;
      add(path, `-l ${name.slice(2)} ${takes} -d ${quoted(short(description))}`.replace(/ {2,}/g, ' '));
    }
    const values = argument === null ? '' : valuesOf(argument);
    if (values !== '') add(path, values);
  }
  return lines;
}
