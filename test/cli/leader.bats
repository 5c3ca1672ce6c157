#!/usr/bin/env bats
# belay leader: a command on one of many machines.
load helper

set_up() { start_server; }

candidate() { start_command belay leader job "$@" 2>>"$HOME/said"; }
count() { [ "$(wc -l <"$HOME/$1" 2>/dev/null)" -ge "$2" ]; }

@test "one of three runs the command; when its belay is killed another one does" {
  local pids=()
  for i in 1 2 3; do
    candidate --ttl 1s -- sh -c "echo $i >>\$HOME/leaders; exec sleep 60"
    pids[i]=$begun
  done
  wait_until count leaders 1
  sleep 1.5
  is "$(wc -l <"$HOME/leaders")" 1
  kill -KILL "${pids[$(cat "$HOME/leaders")]}"
  wait_until count leaders 2
  is "$(sort -u "$HOME/leaders" | wc -l)" 2
}

@test "when the command ends, its leader resigns and another one leads" {
  candidate -- sh -c 'echo one >>"$HOME/leaders"; read -r x <"$HOME/go"; exit 7'
  mkfifo "$HOME/go"
  local first=$begun status=0
  wait_until count leaders 1
  candidate -- sh -c 'echo two $BELAY_NAME $BELAY_FENCE >>"$HOME/leaders"'
  local second=$begun
  echo >"$HOME/go"
  wait "$first" || status=$?
  is "$status" 7
  wait "$second"
  [[ $(tail -n 1 "$HOME/leaders") =~ ^two\ job\ [0-9]+$ ]]
}

@test "--restart: the leader stays, and starts the command again" {
  candidate --restart 50ms -- sh -c 'echo $BELAY_FENCE >>"$HOME/runs"; exit 1'
  wait_until count runs 3
  is "$(sort -u "$HOME/runs" | wc -l)" 1
  kill -TERM "$begun"
  local status=0
  wait "$begun" || status=$?
  [ "$status" = 143 ] || [ "$status" = 1 ]
  run -0 belay leader job -- true # free at once
}

@test "leadership that was taken away during a short command is reported" {
  run -0 belay leader job -- \
    sh -c "ask='redis-cli -s $server_socket'"'; $ask DEL $($ask KEYS "belay::election::*")'
  has "$output" "belay: leader: deposed: taken"
}

@test "a command that cannot be run ends belay, --restart or not" {
  run -127 belay leader job --restart 1s -- no-such-command
  run -126 belay leader job -- /
  run -0 belay leader job -- true
}

@test "a stopped server: the command ends in time, and runs again when the server is back" {
  candidate --ttl 2s --timeout 500ms -- bash -c 'echo $BELAY_FENCE >>"$HOME/runs"; trap "" TERM
    while :; do date +%s%3N >>"$HOME/beats"; sleep 0.01; done'
  wait_until count runs 1
  wait_until count beats 1
  local key end
  key=$(ask_server KEYS 'belay::election::*' | grep '}$')
  fresh() { [ "$(ask_server PTTL "$key")" -gt 1900 ]; }
  wait_until fresh
  end=$(ask_server PEXPIRETIME "$key")
  kill -STOP "$server"
  wait_until grep -q deposed "$HOME/said"
  (($(tail -n 1 "$HOME/beats") < end))
  kill -CONT "$server"
  wait_until count runs 2
  is "$(sort -u "$HOME/runs" | wc -l)" 2
  is "$(wc -l <"$HOME/runs")" 2
  kill -KILL "$begun"
}

# Checks the written terms in order of time: a later leader has a larger number.
never_both() { sort "$HOME"/beats-* | cut -d ' ' -f 2 | sort -n -C; }

@test "two candidates, one cut off or stopped: never both at a time" {
  cat >"$HOME/leads" <<'END'
#!/bin/bash
trap "" TERM
while :; do echo "$EPOCHREALTIME $BELAY_FENCE" >>"$HOME/beats-$1"; sleep 0.01; done
END
  chmod +x "$HOME/leads"
  local cut one other victim
  for cut in relay leader; do
    rm -f "$HOME"/beats-* "$server_folder/r"
    start_relay
    candidate --url "$relay_url" --ttl 2s --timeout 500ms -- "$HOME/leads" one
    one=$begun
    wait_until test -s "$HOME/beats-one"
    candidate --ttl 2s -- "$HOME/leads" other
    other=$begun
    victim=$([ $cut = relay ] && echo "$relay" || echo "$one")
    kill -STOP "$victim"
    wait_until test -s "$HOME/beats-other"
    kill -CONT "$victim"
    sleep 1
    never_both
    mv "$HOME/beats-one" "$HOME/beats-one-before"
    kill -KILL "$other"
    wait_until test -s "$HOME/beats-one" # its turn again
    kill -KILL "$one"
    wait "$one" || true
    never_both
  done
}

@test "belay waits while no server answers; ctrl-C ends that" {
  run -130 on_terminal --when begun --type ^C \
    sh -c 'echo begun; exec belay leader job --url unix:///nonexistent -- echo ran'
  lacks "$output" ran
}

@test "without a server one report; with the server it leads" {
  kill -KILL "$server"
  wait "$server" || true
  candidate --timeout 300ms -- sh -c 'touch "$HOME/ran"; exec sleep 60'
  wait_until grep -q "belay: leader: waiting: $BELAY_URL: " "$HOME/said"
  sleep 1
  is "$(grep -c waiting "$HOME/said")" 1
  serve
  wait_until test -e "$HOME/ran"
}

# The next renewal is due in twenty minutes.
@test "broken, or the server lost its data: deposed at once, and elected again" {
  candidate --ttl 1h --grace 20s -- sh -c 'echo ran >>"$HOME/runs"; exec sleep 60'
  wait_until count runs 1
  run -0 belay break job --yes
  wait_until count runs 2
  has "$(cat "$HOME/said")" "belay: leader: deposed: taken"
  kill -KILL "$server"
  wait "$server" || true
  serve
  wait_until count runs 3
}

@test "--observe: the leader, at each change" {
  start_command belay leader job --observe >"$HOME/observed"
  start_command belay leader job --observe --json >"$HOME/objects"
  wait_until grep -q "no leader" "$HOME/observed"
  candidate --as one -- sleep 60
  local one=$begun
  wait_until grep -q "^one leads, term [0-9]*$" "$HOME/observed"
  wait_until grep -qE '"leader":"one","term":"[0-9]+"' "$HOME/objects"
  kill -TERM "$one"
  wait "$one" || true
  wait_until eval '[ "$(tail -n 1 "$HOME/observed")" = "no leader" ]'
  output=$(cat "$HOME/objects")
  json 'o["name"]' >/dev/null
}

@test "ctrl-C ends the command, and belay ends by SIGINT" {
  run -130 on_terminal --when begun --type ^C belay leader job -- "${waits[@]}"
}

@test "invalid options are refused" {
  for line in "--ttl 3s --grace 2s" "--restart x" "--observe" "--json"; do
    run -2 belay leader job $line -- touch "$HOME/ran"
  done
  run -2 belay leader job
  [ ! -e "$HOME/ran" ]
}

@test "the resignation ignores one signal; a second one ends belay" {
  expect_released 'belay::election*}' belay leader job
}
