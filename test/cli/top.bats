#!/usr/bin/env bats
# belay top.
load helper

set_up() {
  start_server
  export TERM=xterm
}

hold_raw() {
  ask_server SET "belay::lock::{$1}" "0123456789abcdef0123456789abcdef01234567:web-1" PX 600000 \
    >/dev/null
}

# plain: print $output without control sequences.
plain() { sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\r//g' <<<"$output"; }

@test "held objects are drawn until ctrl-C" {
  hold lock orders web-1
  run -130 on_terminal --when web-1 --type ^C belay top
  has "$output" $'\e[H' # the first cell
  has "$(plain)" REMAINING
  [[ $(plain) =~ lock.*orders.*web-1 ]]
}

@test "a pattern, and the number of waiters" {
  hold lock orders web-1
  hold fair queue web-2
  wait_for fair queue web-3
  run -130 on_terminal --when "held 2  waiting 1" --type ^C belay top --every 100ms
  run -130 on_terminal --when "held 0  waiting 0" --type ^C belay top --kind election
  run -130 on_terminal --when "held 1  waiting 0" --type ^C belay top 'ord*'
}

@test "rows are cut to the terminal's size, also after a resize" {
  for i in {1..40}; do hold_raw "n$i"; done
  run -130 on_terminal --when REMAINING --size 40x10 --when WAITING --type x \
    --when REMAI --type ^C belay top --every 500ms
  local last
  last=$(plain | tr -d x | tac | sed '/belay top/q' | tac)
  is "$(awk 'length > 40' <<<"$last")" ""
  is "$(grep -c '^lock' <<<"$last")" 4
}

@test "no terminal, or one without control sequences" {
  TERM=dumb run -2 on_terminal belay top
  has "$output" "see belay ls"
  run -2 belay top
}

@test "a server goes away and comes back: an error line, then rows again" {
  hold_raw here
  (
    sleep 2
    kill -STOP "$server"
    sleep 2
    kill -CONT "$server"
  ) 3>&- &
  run -130 on_terminal --when here --type x --when "known: it may have been" --type x \
    --when here --type ^C belay top --every 200ms --timeout 300ms
  lacks "$output" "belay: top:"
}

@test "names are escaped, and no token is shown" {
  hold_raw 'evil%1B[31m'
  hold lock real web-3
  run -130 on_terminal --when web-3 --type ^C belay top -v
  has "$output" 'evil\x1b[31m'
  lacks "$output" $'evil\e'
  lacks "$output" 0123456789abcdef
  lacks "$output" "$(ask_server GET 'belay::lock::{real}' | cut -d: -f1)"
}

@test "no server, invalid options" {
  run -120 on_terminal belay top --url unix:///nonexistent --timeout 200ms
  run -120 on_terminal belay top --url redis://me:hunter2@127.0.0.1:1 --timeout 200ms
  lacks "$output" $'\e[H'
  lacks "$output" hunter2
  run -2 belay top --every 1ms
}
