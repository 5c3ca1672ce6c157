#!/usr/bin/env bats
# belay once: a command that is run once for each key.
load helper

set_up() { start_server; }

key='belay::idempotency::{k}'
work() { belay once k "$@" -- sh -c 'echo ran >>"$HOME/runs"; echo work'; }

@test "the command runs once; the second call reports done already" {
  is "$(work)" work
  run -0 work
  [[ $output =~ ^belay:\ once:\ done\ already,\ by\ .*\;\ remembered\ for\ (1d|23h59m)$ ]]
  is "$(work 2>"$HOME/said")" ""
  run -0 work --json
  is "$(json 'o["key"], o["outcome"], o["remaining_ms"] > 86000000')" "('k', 'done', True)"
  run -0 work --quiet
  is "$output" ""
  is "$(cat "$HOME/runs")" ran
  is "$(belay once other -- echo work)" work
}

@test "it is remembered for --for" {
  work --for 1s
  run -0 work
  has "$output" "done already"
  wait_until eval "[ \"\$(ask_server EXISTS '$key')\" = 0 ]"
  is "$(work)" work
}

@test "three at a time: one run; the others report that it runs" {
  for i in 1 2 3; do
    start_command belay once k -- sh -c 'echo ran >>"$HOME/runs"; sleep 3' 2>>"$HOME/said"
  done
  local statuses=
  for pid in "${started[@]:1}"; do
    local status=0
    wait "$pid" || status=$?
    statuses+="$status "
  done
  is "$(cat "$HOME/runs")" ran
  is "$(tr ' ' '\n' <<<"$statuses" | sort | xargs)" "0 121 121"
  is "$(grep -c 'runs already' "$HOME/said")" 2
  run -0 work
  has "$output" "done already"
}

@test "a command that fails, is killed, or cannot be run is not remembered" {
  run -3 belay once k -- sh -c 'exit 3'
  run -137 belay once k -- sh -c 'kill -KILL $$'
  run -127 belay once k -- no-such-command
  run -126 belay once k -- /
  is "$(work)" work
}

@test "kill -9 of belay: another one runs the command after --ttl" {
  start_command belay once k --ttl 1s -- sh -c 'echo $$ >"$HOME/pid"; exec sleep 60'
  wait_until test -s "$HOME/pid"
  sleep 1.5 # it is extended
  run -121 work
  has "$output" "runs already"
  kill -KILL "$begun"
  wait_until is_gone "$(cat "$HOME/pid")"
  wait_until work
  is "$(cat "$HOME/runs")" ran
}

@test "a stopped server: the command ends in time, and may run again" {
  start_command belay once k --ttl 2s --timeout 300ms -- bash -c 'trap "" TERM
    while :; do date +%s%3N >>"$HOME/beats"; sleep 0.01; done' 2>"$HOME/said"
  wait_until test -s "$HOME/beats"
  local status=0 end before
  before=$(ask_server HGET "$key" until)
  extended() { end=$(ask_server HGET "$key" until) && [ "$end" != "$before" ]; }
  wait_until extended
  kill -STOP "$server"
  wait "$begun" || status=$?
  is "$status" 122
  kill -CONT "$server"
  (($(tail -n 1 "$HOME/beats") < end))
  has "$(cat "$HOME/said")" "the record could not be extended in time"
  wait_until work
}

@test "a record that was taken over meanwhile is not changed" {
  start_command belay once k --ttl 1s -- sh -c 'touch "$HOME/began"; exec sleep 60' 2>"$HOME/said"
  wait_until test -e "$HOME/began"
  ask_server DEL "$key"
  is "$(work)" work
  local status=0
  wait "$begun" || status=$?
  is "$status" 122
  run -0 work
  has "$output" "done already"
}

@test "--forget" {
  run -1 belay once k --forget
  is "$output" "not found"
  work
  run -0 belay once k --forget --json
  is "$output" '{"key":"k","existed":true}'
  is "$(work)" work
  is "$(wc -l <"$HOME/runs")" 2
}

@test "--forget during a run needs --yes, and the run reports the loss" {
  start_command belay once k --ttl 1500ms -- \
    sh -c 'touch "$HOME/began"; exec sleep 60' 2>"$HOME/said"
  local first=$begun status=0
  wait_until test -e "$HOME/began"
  run -2 belay once k --forget
  has "$output" "belay: once: the command runs at "
  has "$output" "--yes"
  is "$(ask_server EXISTS "$key")" 1
  run -0 belay once k --forget --yes
  wait "$first" || status=$?
  is "$status" 122
  has "$(cat "$HOME/said")" "its record is gone: forgotten (--forget), or lost by the server"
  lacks "$(cat "$HOME/said")" "another one"
  run -1 belay once k --forget --yes
}

@test "forgotten and not extended since: the end is not remembered, and that is reported" {
  run -122 belay once k -- belay once k --forget --yes --quiet
  has "$output" "the command succeeded, but belay cannot remember it: its record is gone"
  run -122 belay once k -- sh -c 'belay once k --forget --yes -q; belay once k -- true'
  has "$output" "cannot remember it: another process has begun"
  work --for 1m
  run -2 belay once k --yes -- true
}

@test "--wait: until it is done elsewhere, or can run here" {
  start_command belay once k -- sh -c 'touch "$HOME/began"; sleep 1.5; exit 3'
  wait_until test -e "$HOME/began"
  run -121 work --wait 300ms
  is "$(work --wait 1m)" work
  rm "$HOME/began"
  start_command belay once other -- sh -c 'touch "$HOME/began"; sleep 1'
  wait_until test -e "$HOME/began"
  run -0 belay once other --wait forever -v -- touch "$HOME/twice"
  has "$output" "belay: once: waiting for "
  has "$output" "done already"
  [ ! -e "$HOME/twice" ]
  start_command belay once late -- sh -c 'touch "$HOME/late"; exec sleep 60'
  wait_until test -e "$HOME/late"
  start_command belay once late --wait 1h -- true
  sleep 0.3
  kill -TERM "$begun"
  local status=0
  wait "$begun" || status=$?
  is "$status" 143
}

@test "no server, a full disk, invalid options" {
  run -120 belay once k --url unix:///nonexistent -- touch "$HOME/ran"
  work
  run -123 bash -c 'belay once k --json -- touch "$HOME/ran" >/dev/full'
  has "$output" "No space left"
  for line in "" "--forget -- true" "--for 1ms -- true" "--ttl 3s --grace 2s -- true"; do
    run -2 belay once other $line
  done
  [ ! -e "$HOME/ran" ]
}

@test "a signal during the finish is ignored; a second one ends belay" {
  for signals in 1 2; do
    start_command env --default-signal belay once "late$signals" --timeout 20s -- \
      sh -c "kill -STOP $server"
    local belay=$begun status
    wait_until eval "[ -z \"\$(pgrep -P $belay)\" ]"
    sleep 0.5
    wait_until eval "[ -z \"\$(pgrep -P $belay)\" ]"
    kill -INT "$belay"
    sleep 0.3
    [ $signals = 1 ] || kill -INT "$belay"
    sleep 0.3
    kill -CONT "$server"
    status=0
    wait "$belay" || status=$?
    is "$status" "$([ $signals = 1 ] && echo 0 || echo 130)"
  done
  run -0 belay once late1 -- echo again
  has "$output" "done already"
}

@test "variables of an outer belay are removed" {
  is "$(BELAY_FENCE=7 BELAY_DEADLINE=8 belay once k -- \
    sh -c 'echo "<$BELAY_FENCE$BELAY_DEADLINE>"')" "<>"
}

@test "ctrl-C: the record is given back" {
  run -130 on_terminal --when begun --type ^C belay once k -- "${waits[@]}"
  is "$(work)" work
}

@test "the claim ends one percent early, because clock rates differ" {
  cat >"$HOME/margin" <<'END'
import os, time
words = open(f"/proc/{os.getppid()}/cmdline", "rb").read().split(b"\0") # of the supervisor
print(int(words[5]) < time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 3600 * 10**9 * 99 // 100)
END
  run -0 belay exec job --ttl 1h --grace 1s -- python3 "$HOME/margin"
  is "$output" True
  run -0 belay once k --ttl 1h --grace 1s -- python3 "$HOME/margin"
  is "$output" True
}

@test "the reply to the finish is lost: belay sends it once more" {
  run -0 belay once k --timeout 2s -- \
    sh -c '{ sleep 3; kill -CONT "$1"; } >&- 2>&- & kill -STOP "$1"' sh "$server"
  is "$output" ""
  run -0 work
  has "$output" "done already"
}
