# shellcheck shell=bash
# Completion of fascicle's verbs, options and their words, as its --help says them. `cmake --install` puts it where
# bash-completion looks; without that: . jobs/packaging/completion.bash
_fascicle() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} words=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words="$("$1" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p') --help --version"
  elif [[ $word == --* ]]; then
    words=$("$1" "$verb" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
  elif [[ $before == --* ]]; then # --device auto|cpu|cuda
    words=$("$1" "$verb" --help | sed -n "s/^  $before \([a-z0-9-]*|[a-z0-9|-]*\).*/\1/p" | tr '|' ' ')
  elif [[ $verb == trace || $verb == bench ]] && ((COMP_CWORD == 2)); then
    words=$("$1" "$verb" --help | sed -n "s/^Usage: fascicle $verb \([a-z|]*\).*/\1/p" | tr '|' ' ')
  fi
  [ -n "$words" ] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _fascicle fascicle
