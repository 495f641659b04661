import type { Cli } from '../cli.ts';
import type { SHELLS } from '../options.ts';

/** What a shell does at each Tab: it asks `eod complete`, so that the offers are always those of the installed version. */
const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `# Completion of eod for bash; written by "eod completion bash".
_eod() {
  local IFS=$'\\n' typed=\${COMP_WORDS[COMP_CWORD]} start
  COMPREPLY=($(eod complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ \${COMPREPLY[0]} == :files* ]]; then
    start=\${COMPREPLY[0]#:files}
    # The = of --flag=value is a word of its own, unless COMP_WORDBREAKS lacks it.
    if [[ $typed == = ]]; then typed=''; fi
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -P "$start" -- "\${typed#"$start"}"))
  else
    COMPREPLY=("\${COMPREPLY[@]%%$'\\t'*}")
  fi
}
complete -F _eod eod
`,
  zsh: `#compdef eod
# Completion of eod for zsh; written by "eod completion zsh".
_eod() {
  local -a offers
  offers=("\${(@f)$(eod complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ $offers[1] == :files* ]]; then
    compset -P "\${(b)offers[1]#:files}"
    _files
  elif [[ -n $offers[1] ]]; then
    # A colon separates a word from its meaning.
    offers=("\${(@)offers//:/\\\\:}")
    offers=("\${(@)offers/$'\\t'/:}")
    _describe eod offers
  fi
}
# Autoloaded from fpath, the file is the function itself; sourced, it registers the function.
if [[ $funcstack[1] == _eod ]]; then _eod "$@"; else compdef _eod eod; fi
`,
  fish: `# Completion of eod for fish; written by "eod completion fish".
function __eod_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l offers (eod complete -- $words[2..-1] "$typed" 2>/dev/null)
    if string match -q -- ':files*' "$offers[1]"
        __fish_complete_path "$typed"
    else
        printf '%s\\n' $offers
    end
end
complete -c eod -f -a '(__eod_complete)'
`,
};

/** Prints the script that completes command lines in a shell. */
export function printScript(cli: Cli, shell: keyof typeof SCRIPTS): void {
  cli.stdout.write(SCRIPTS[shell]);
}
