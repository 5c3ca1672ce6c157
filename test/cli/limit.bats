#!/usr/bin/env bats
# belay limit.
load helper

set_up() { start_server; }

@test "as many calls as tokens, then denials" {
  for left in 2 1 0; do is "$(belay limit k --rate 1/h --burst 3)" "allowed, $left left"; done
  run -1 belay limit k --rate 1/h --burst 3
  has "$output" "denied, again in "
  run -1 belay limit k --rate 1/h --burst 3 --json
  is "$(json '(o["key"], o["allowed"], o["remaining"], 3500000 < o["retry_after_ms"] <= 3600000,
      o["waited_ms"])')" \
    "('k', False, 0, True, 0)"
  run -1 belay limit k --rate 1/h --burst 3 --quiet
  is "$output" ""
  run -0 belay limit other --rate 1/h --burst 3 --json
  is "$(json 'o["allowed"], o["remaining"], o["retry_after_ms"]')" "(True, 2, 0)"
}

@test "the burst is the count of --rate, unless --burst is given" {
  is "$(belay limit k --rate 7/d)" "allowed, 6 left"
}

@test "--cost N takes N tokens; --cost 0 takes none" {
  is "$(belay limit k --rate 1/h --burst 10 --cost 7)" "allowed, 3 left"
  is "$(belay limit k --rate 1/h --burst 10 --cost 0)" "allowed, 3 left"
  run -1 belay limit k --rate 1/h --burst 10 --cost 4
  is "$(belay limit k --rate 1/h --burst 10 --cost 3)" "allowed, 0 left"
}

@test "each --name has tokens of its own" {
  belay limit k --rate 1/h --name a
  run -1 belay limit k --rate 1/h --name a
  belay limit k --rate 1/h --name b
}

@test "--wait waits, at most for the given time" {
  belay limit k --rate 1/2s
  for wait in "--wait 20s" --wait; do
    run -0 belay limit k --rate 1/2s $wait --json
    is "$(json 'o["allowed"], 0 < o["waited_ms"] <= 20000')" "(True, True)"
  done
  belay limit slow --rate 1/h
  run -1 belay limit slow --rate 1/h --wait 1m
  has "$output" "denied, again in "
}

@test "of several waiters none is too early" {
  local begun_at=$EPOCHREALTIME
  for i in {1..6}; do start_command belay limit k --rate 2/s --burst 1 --wait --quiet; done
  for pid in "${started[@]:1}"; do wait "$pid"; done
  python3 -c 'import sys; assert float(sys.argv[2]) - float(sys.argv[1]) > 2.4' \
    "$begun_at" "$EPOCHREALTIME"
}

@test "an interrupted waiter returns its tokens" {
  belay limit k --rate 1/min
  start_command env --default-signal=INT belay limit k --rate 1/min --wait
  local pid=$begun status=0
  wait_until eval '[ "$(retry_of)" -gt 61000 ]'
  kill -INT "$pid"
  wait "$pid" || status=$?
  is "$status" 130
  wait_until eval '[ "$(retry_of)" -le 60000 ]'
}
retry_of() {
  belay limit k --rate 1/min --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["retry_after_ms"])'
}

# ---- a command ----

@test "a command is run when it is allowed" {
  run -0 belay limit k --rate 2/h -- echo "a b" c
  is "$output" "a b c"
  run -7 belay limit k --rate 2/h -- sh -c 'exit 7'
  run -121 --separate-stderr belay limit k --rate 2/h -- echo no
  is "$output" ""
  has "$stderr" "belay: limit: denied, again in "
  run -121 --separate-stderr belay limit k --rate 2/h --quiet -- echo no
  is "$output$stderr" ""
}

@test "the command replaces belay: same process id, no open files, default signals, own input" {
  start_command belay limit k --rate 9/h -- sh -c 'echo $$ >"$HOME/pid"; exec sleep 60'
  wait_until test -s "$HOME/pid"
  is "$(cat "$HOME/pid")" "$begun"
  is "$(env --default-signal belay limit k --rate 99/h -- \
      grep '^Sig\(Ign\|Blk\)' /proc/self/status)" \
    "$(env --default-signal grep '^Sig\(Ign\|Blk\)' /proc/self/status)"
  is "$(belay limit k --rate 99/h -- ls /proc/self/fd)" "$(ls /proc/self/fd)"
  is "$(echo mine | belay limit k --rate 99/h -- cat)" mine
}

@test "no such command: 127; one that cannot be run: 126" {
  run -127 belay limit k --rate 9/h -- no-such-command-here
  has "$output" "cannot run no-such-command-here: No such file"
  run -126 belay limit k --rate 9/h -- /
  has "$output" "cannot run /: "
}

# ---- errors ----

@test "invalid options are refused, and no server is asked" {
  run -2 belay limit k
  has "$output" "--rate is missing"
  run -2 belay limit k --rate 10
  run -2 belay limit k --rate 0/s
  run -2 belay limit k --rate 3/s --cost 4
  has "$output" "never be allowed"
  run -2 belay limit k --rate 3/s --cost 0 --wait
  run -2 belay limit k --rate 3/s --cost 0 -- ls
  run -2 belay limit k --rate 3/s --wait 2d
  run -2 belay limit k ls --rate 3/s
  has "$output" "behind --"
  run -2 belay limit k --rate 4503599627370496/d
  is "$(ask_server DBSIZE)" 0
}

@test "a ban, and a reset" {
  belay limit k --rate 3/h --cost 3 -q
  is "$(belay limit k --reset)" reset
  is "$(belay limit k --rate 3/h)" "allowed, 2 left"
  is "$(belay limit k --rate 3/h --ban 2min)" "banned for 2m"
  run -1 belay limit k --rate 3/h
  has "$output" "denied, again in 1m5"
  is "$(belay limit k --rate 3/h --ban 0)" "not banned"
  is "$(belay limit k --rate 3/h)" "allowed, 1 left"
  is "$(belay limit k --rate 3/h --ban 1h --json)" '{"key":"k","banned_ms":3600000}'
  is "$(belay limit k --reset --json)" '{"key":"k","reset":true}'
  is "$(ask_server DBSIZE)" 0
  run -2 belay limit k --rate 3/h --ban 1h --reset
  has "$output" "exclude each other"
  run -2 belay limit k --rate 3/h --ban 1h -- ls
  run -2 belay limit k --ban 1h
  has "$output" "--rate is missing"
}

@test "no server: 120, and the command is not run" {
  run -120 belay limit k --rate 1/s --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: limit: cannot ask: no server could be reached"
  run -120 belay limit k --rate 1/s --url redis://127.0.0.1:1 --timeout 100ms -- touch "$HOME/ran"
  [ ! -e "$HOME/ran" ]
}

@test "a full disk" {
  run -123 bash -c 'belay limit k --rate 1/h >/dev/full'
  has "$output" "the output could not be written"
}
