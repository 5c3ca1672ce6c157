#!/usr/bin/env bats
# belay top.
load helper

set_up() {
  start_server
  export TERM=xterm
}

enter=$'\e[?1049h' leave=$'\e[?1049l'

@test "on a terminal: a screen of its own, which is given back when q is typed" {
  hold lock orders web-1
  run -0 on_terminal --when "q: leave" --type q belay top
  has "$output" "$enter"
  has "$output" "REMAINING"
  [[ $output =~ lock.*orders.*web-1 ]]
  has "$output" $'\e[1m' # bold
  is "${output##*"$leave"}" "" # and nothing after it
  is "$(on_terminal --when "q: leave" --type ^C belay top | tail -c 8)" "$leave"
  run -130 on_terminal --when "q: leave" --type ^C belay top
}

@test "modes of the terminal are as they were: after q, ctrl-C, and a signal" {
  for end in "--when leave --type q" "--when leave --type ^C"; do
    run on_terminal $end bash -c 'stty -a >"$HOME/before"; belay top; trap "" INT; stty -a >"$HOME/after"'
    diff "$HOME/before" "$HOME/after"
  done
  on_terminal bash -c 'stty -a >"$HOME/before"; timeout -s TERM --foreground 1 belay top; stty -a >"$HOME/after"'
  diff "$HOME/before" "$HOME/after"
}

@test "ctrl-Z gives the terminal back for as long as it is stopped" {
  (
    stopped() { grep -q ') T ' "/proc/$(cat "$HOME/pid")/stat"; }
    wait_until stopped
    kill -CONT "$(cat "$HOME/pid")"
  ) 3>&- &
  run -0 on_terminal --when "q: leave" --type ^Z --when "$leave" --type x --when "q: leave" --type q \
    bash -c 'echo $$ >"$HOME/pid"; exec belay top --every 1h'
  is "$(grep -aoF "$enter" <<<"$output" | wc -l)" 2
  is "$(grep -aoF "$leave" <<<"$output" | wc -l)" 2
}

@test "it is redrawn: what is new, what is gone, and when the terminal gets another size" {
  for i in {1..40}; do hold_raw "n$i"; done
  run -0 on_terminal --when "q: leave" --size 40x10 --when "q: leave" --type q belay top --every 1h
  # as many as fit: 30 rows, of which 5 are for other things; and then 10
  local first=${output%%q: leave*} second=${output#*q: leave}
  is "$(grep -c '^.\[Klock' <<<"$first")" 25
  is "$(grep -c '^.\[Klock' <<<"$second")" 5
  is "$(wc -l <<<"${first#*"$enter"}")" 30 # no line end in the last row
  is "$(sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\r//g' <<<"$second" | awk 'length > 40')" ""
  has "$(sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\r//g' <<<"$first")" REMAINING
}

hold_raw() { ask SET "belay::lock::{$1}" "0123456789abcdef0123456789abcdef01234567:web-1" PX 600000 >/dev/null; }

@test "what is asked for, and how many wait" {
  hold lock orders web-1
  hold fair queue web-2
  wait_for fair queue web-3
  run -0 on_terminal --when "held 2  waiting 1" --type x --when "q: leave" --type q belay top --every 100ms
  run -0 on_terminal --when "held 0  waiting 0" --type q belay top --kind election
  run -0 on_terminal --when "held 1  waiting 0" --type q belay top 'ord*'
}

@test "NO_COLOR, and where there is no terminal that can be drawn on" {
  NO_COLOR=1 run -0 on_terminal --when "q: leave" --type q belay top
  has "$output" "$enter"
  lacks "$output" $'\e[1m'
  lacks "$output" $'\e[2m'
  TERM=dumb run -2 on_terminal belay top
  has "$output" "see belay ls"
  run -2 belay top
}

@test "ctrl-\\ leaves the screen as ctrl-C does" {
  run -130 on_terminal --when "q: leave" --type $'\x1c' belay top
  has "$output" $'\e[?1049l'
  run -0 on_terminal --when "q: leave" --type $'\x1c' bash -c 'trap : INT; belay top; stty -a'
  has "$output" " icanon"
}

@test "a server that goes away and comes back: it says so, and goes on" {
  hold_raw here
  (
    sleep 2
    kill -STOP "$server"
    sleep 2
    kill -CONT "$server"
  ) 3>&- &
  run -0 on_terminal --when "q: leave" --type x --when "known: it may have happened" --type x --when "q: leave" --type q \
    belay top --every 200ms --timeout 300ms
  lacks "$output" "belay: top:"
}

@test "names give no orders, and no token is shown" {
  hold_raw 'evil%1B[31m'
  hold lock real web-3
  run -0 on_terminal --when "q: leave" --type q belay top -v
  has "$output" 'evil\x1b[31m'
  lacks "$output" $'evil\e'
  lacks "$output" 0123456789abcdef
  lacks "$output" "$(ask GET 'belay::lock::{real}' | cut -d: -f1)"
}

@test "no server, what is asked for" {
  run -120 on_terminal belay top --url unix:///nonexistent --timeout 200ms
  run -120 on_terminal belay top --url redis://me:hunter2@127.0.0.1:1 --timeout 200ms
  lacks "$output" "$enter"
  lacks "$output" hunter2
  run -2 belay top --every 1ms
}
