#!/usr/bin/env bats
# belay top.
load helper

set_up() {
  start_server
  export TERM=xterm
}

enter=$'\e[?1049h' leave=$'\e[?1049l'

@test "lines where there is no terminal: each look, and what has changed" {
  hold lock orders web-1
  begin belay top --every 200ms >"$HOME/lines"
  local top=$begun
  wait_until grep -q 'held 1 ' "$HOME/lines"
  hold semaphore gpu web-2
  local second=$begun
  wait_until grep -q 'held 2 .* taken 1 ' "$HOME/lines"
  kill "$second"
  wait_until grep -q 'held 1 .* gone 1$' "$HOME/lines"
  kill "$top"
  wait_until eval "! kill -0 $top"
  is "$(grep -E '^(taken|gone): ' "$HOME/lines")" $'taken: semaphore gpu by web-2\ngone: semaphore gpu by web-2'
  is "$(grep -vE '^(taken|gone): ' "$HOME/lines" | grep -vE '^[0-9:]{8}  held [0-9]+  waiting [0-9]+  commands/s [0-9-]+  taken [0-9]+  gone [0-9]+$')" ""
  lacks "$(cat "$HOME/lines")" $'\e'
}

@test "so many looks, in JSON, of what is asked for" {
  hold lock orders web-1
  hold fair queue web-2
  wait_for fair queue web-3
  queued() { run belay top --count 1 --json queue && [ "$(json 'o["waiting"]')" = 1 ]; }
  wait_until queued
  run -0 belay top --json --count 3 --every 100ms
  is "${#lines[@]}" 3
  is "$(json 'o["event"], o["held"], o["waiting"], o["taken"], o["gone"]' | sort -u)" "('look', 2, 1, 0, 0)"
  is "$(json '(o["commands_per_s"] or 0) > 0')" $'False\nTrue\nTrue'
  run -0 belay top --json --count 1 --kind election
  is "$(json 'o["held"]')" 0
  run -0 belay top --json --count 1 'ord*'
  is "$(json 'o["held"]')" 1
  run -0 belay top --quiet --count 1
  is "$output" ""
}

@test "commands in a second are those of the server" {
  begin belay top --json --count 2 --every 3s >"$HOME/lines"
  local top=$begun
  wait_until grep -q null "$HOME/lines"
  for i in {1..5000}; do echo PING; done | ask >/dev/null
  wait "$top"
  run -0 tail -n 1 "$HOME/lines"
  is "$(json '500 < o["commands_per_s"] < 5100')" True
}

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

@test "modes of the terminal are as they were: after q, ctrl-C, a count, and a signal" {
  for end in "--when leave --type q" "--when leave --type ^C"; do
    run on_terminal $end bash -c 'stty -a >"$HOME/before"; belay top; trap "" INT; stty -a >"$HOME/after"'
    diff "$HOME/before" "$HOME/after"
  done
  on_terminal bash -c 'stty -a >"$HOME/before"; belay top --count 2 --every 100ms; stty -a >"$HOME/after"'
  diff "$HOME/before" "$HOME/after"
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

@test "NO_COLOR, a terminal that can do nothing, and JSON on a terminal" {
  NO_COLOR=1 run -0 on_terminal --when "q: leave" --type q belay top
  has "$output" "$enter"
  lacks "$output" $'\e[1m'
  lacks "$output" $'\e[2m'
  TERM=dumb run -0 on_terminal belay top --count 1
  lacks "$output" $'\e'
  run -0 on_terminal belay top --count 1 --json
  lacks "$output" $'\e'
}

@test "ctrl-\\ leaves the screen as ctrl-C does" {
  run -130 on_terminal --when "q: leave" --type $'\x1c' belay top
  has "$output" $'\e[?1049l'
  run -0 on_terminal --when "q: leave" --type $'\x1c' bash -c 'trap : INT; belay top; stty -a'
  has "$output" " icanon"
}

@test "a server that goes away and comes back" {
  hold_raw here
  begin belay top --every 200ms --timeout 300ms >"$HOME/lines" 2>"$HOME/errors"
  local top=$begun
  wait_until grep -q 'held 1 ' "$HOME/lines"
  kill -STOP "$server"
  wait_until grep -q 'cannot list: ' "$HOME/errors"
  kill -0 "$top"
  : >"$HOME/lines"
  kill -CONT "$server"
  wait_until grep -q 'held 1 ' "$HOME/lines"
  is "$(grep '^[+-]' "$HOME/lines")" "" # it was there all the time
  kill "$top"
}

@test "and a live view says so, and goes on" {
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

@test "no server, a full disk, what is asked for" {
  run -120 belay top --url unix:///nonexistent --timeout 200ms
  run -120 on_terminal belay top --url redis://me:hunter2@127.0.0.1:1 --timeout 200ms
  lacks "$output" "$enter"
  lacks "$output" hunter2
  run -123 bash -c 'belay top >/dev/full'
  run -2 belay top --every 1ms
  run -2 belay top --count 0
}
