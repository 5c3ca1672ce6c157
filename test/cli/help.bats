#!/usr/bin/env bats
# Help, manual and completion.
load helper

# Prints all commands, also parts such as "count add".
all_commands() {
  local name part
  for name in $(belay help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    if belay help "$name" | head -n 1 | grep -q '|'; then
      for part in $(belay help "$name" | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
        echo "$name $part"
      done
    else
      echo "$name"
    fi
  done
}

@test "each command has a usage, in lines of at most 79 characters" {
  is "$(all_commands | grep -cx 'count add')" 1
  while read -r command; do
    for form in "$command --help" "help $command" "$command -h"; do
      run -0 belay $form
      has "${lines[0]}" "usage: belay $command"
      has "$output" "--help "
      # A usage, an example and a list of names may be longer than a line.
      is "$(grep -v '^usage: \|^  belay ' <<<"$output" | awk 'length > 79')" ""
    done
  done < <(all_commands)
}

@test "each command has an example" {
  while read -r command; do
    run -0 belay $command --help
    grep -qE "^  ([^ -].*)?belay $command( |$)" <<<"$output" ||
      { echo "$command: $output" && false; }
  done < <(all_commands; all_commands | sed -n 's/ .*//p' | uniq)
}

@test "belay --help and --version" {
  run -0 belay --help
  is "$output" "$(belay help)"
  run -0 belay --version
  [[ $output =~ ^belay\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
  run -2 belay help cuont
  has "$output" "see belay help"
}

@test "help is on standard output, and needs no server" {
  run -0 --separate-stderr belay count get --help --url nonsense
  is "$stderr" ""
}

@test "the manual page has no warnings, and all commands and options" {
  page=$(find "$CLI_PLACE" -name belay.1)
  is "$(belay manual)" "$(cat "$page")"
  run -0 --separate-stderr env MANWIDTH=80 MANROFFOPT=-wall man --warnings -l "$page"
  is "$stderr" ""
  text=$(MANWIDTH=200 man -l "$page" 2>/dev/null | col -b)
  while read -r command; do
    has "$text" "belay $command "
    for option in $(belay help $command | sed -n 's/^  \(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p'); do
      has "$text" "$option"
    done
  done < <(all_commands)
  for status in 0 1 2 120 121 122 123 126 127 128; do
    grep -qE "^ +$status +[a-z]" <<<"$text"
    for command in exec leader once; do
      belay "$command" --help | grep -qE "^ +$status +[a-z]"
    done
  done
  if command -v mandoc; then # the page has no date, so that builds are reproducible
    is "$(mandoc -T lint -W warning "$page" | grep -v 'missing date')" ""
  fi
}

# complete_as WORD...: print the words to which bash completes the last one.
complete_as() {
  bash --norc -c 'source "$1"; shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _belay
    printf "%s\n" "${COMPREPLY[@]}"' bash "$(find "$CLI_PLACE" -name belay.bash)" "$@"
}

@test "bash completes commands, options, names and files" {
  is "$(complete_as belay cou)" count
  has "$(complete_as belay '')" version
  is "$(complete_as belay count '')" $'add\nget\nset\ndelete'
  is "$(complete_as belay count add --js)" --json
  is "$(complete_as belay acl --user)" --user
  has "$(complete_as belay acl --user me lock li)" limiter
  is "$(complete_as belay count add --url '')" ""
  is "$(cd "$HOME" && complete_as belay count add --config no)" none
  is "$(complete_as belay completion '')" $'bash\nfish\nzsh'
  is "$(complete_as belay rank top b --ties '')" $'member\nearlier\nlater'
  is "$(complete_as belay ls -k se)" semaphore
  is "$(complete_as belay help vers)" version
}

# fish_completes LINE: print the words to which fish completes it.
fish_completes() {
  fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
    "$(find "$CLI_PLACE" -name belay.fish)" "$1" | cut -f 1
}

@test "fish completes commands, options, values and files" {
  require fish
  is "$(fish_completes 'belay cou')" count
  is "$(fish_completes 'belay count ')" $'add\ndelete\nget\nset'
  is "$(fish_completes 'belay count add --js')" --json
  is "$(fish_completes 'belay rank top b --ties ')" $'earlier\nlater\nmember'
  is "$(fish_completes 'belay ls -k se')" semaphore
  is "$(fish_completes 'belay completion ')" $'bash\nfish\nzsh'
  is "$(fish_completes 'belay exec job --fa')" --fair
  is "$(fish_completes 'belay count add --url ')" ""
  touch "$HOME/none"
  is "$(cd "$HOME" && fish_completes 'belay ping --config no')" none
  has "$(fish_completes 'belay exec job -- gre')" grep
}

# zsh_completes WORD...: print the candidates of zsh for the last word. It calls belay's function as
# zsh does, with stubs for the functions of zsh.
zsh_completes() {
  zsh -f -c '
    compdef() { :; }
    compadd() { [[ $1 == -- ]] && shift; (( $# )) && print -rl -- "$@"; }
    _describe() { [[ $1 == -o ]] && shift; print -rl -- "${(@)${(@P)2}%%:*}"; }
    _files() { print FILES; }
    _message() { :; }
    _normal() { print -r -- "NORMAL $CURRENT $words"; }
    source "$1"
    shift
    words=("$@") CURRENT=$#
    _belay | {
      while read -r line; do
        [[ $line == ${words[CURRENT]}* || $line == (FILES|NORMAL*) ]] && print -r -- $line
      done
      true
    }
  ' zsh "$(find "$CLI_PLACE" -name _belay)" "$@"
}

@test "zsh completes commands, options, values and files" {
  require zsh
  is "$(zsh_completes belay cou)" count
  is "$(zsh_completes belay count '')" $'add\nget\nset\ndelete'
  is "$(zsh_completes belay count add --js)" --json
  is "$(zsh_completes belay rank top b --ties '')" $'member\nearlier\nlater'
  is "$(zsh_completes belay ls -k se)" semaphore
  is "$(zsh_completes belay completion '')" $'bash\nfish\nzsh'
  is "$(zsh_completes belay exec job --fa)" --fair
  is "$(zsh_completes belay count add --url '')" ""
  is "$(zsh_completes belay ping --config '')" FILES
  is "$(zsh_completes belay exec job --ttl 9s -- gre)" "NORMAL 1 gre"
}

@test "the completion scripts have no syntax errors" {
  require zsh fish
  belay completion zsh >"$HOME/_belay"
  zsh -n "$HOME/_belay"
  belay completion fish >"$HOME/belay.fish"
  fish --no-execute "$HOME/belay.fish"
  belay completion bash | bash -n
  if command -v shellcheck; then belay completion bash | shellcheck -s bash -; fi
}
