#!/usr/bin/env bats
# belay exec: how long it holds, how long it runs, what it says and shows.
load helper

set_up() { start_server; }

key='belay::lock::{job}'
is_held() { [ "$(ask EXISTS "$key")" = 1 ]; }

@test "--hold: the lock is kept although the command has ended; the status is the command's" {
  begin belay exec job --try --hold 6s -- sh -c 'touch "$HOME/ran"; exit 3'
  local first=$begun status=0
  wait_until test -e "$HOME/ran"
  run -121 belay exec job --try --hold 6s -- touch "$HOME/twice"
  wait "$first" || status=$?
  is "$status" 3
  [ ! -e "$HOME/twice" ]
  is "$(ask EXISTS "$key")" 0
}

@test "--hold is renewed for longer than a lease; it counts from the grant" {
  local from to
  from=$(now_ms)
  belay exec job --hold 2s --ttl 1s -- sleep 1
  to=$(now_ms)
  ((to - from >= 2000))
  begin belay exec job --hold 1m --ttl 600ms -- touch "$HOME/ran"
  wait_until test -e "$HOME/ran"
  sleep 1.5
  is_held
  kill -TERM "$begun"
  wait "$begun"
  is "$(ask EXISTS "$key")" 0
}

@test "--hold is not for a command that cannot be run, nor for one that a signal has ended" {
  run -127 timeout 30 belay exec job --hold 1h -- no-such-command
  begin belay exec job --hold 1h -- sh -c 'touch "$HOME/ran"; exec sleep 60'
  wait_until test -e "$HOME/ran"
  kill -TERM "$begun"
  local status=0
  wait "$begun" || status=$?
  is "$status" 143
  is "$(ask EXISTS "$key")" 0
}

@test "a lock that is lost before --hold is over: 122" {
  begin belay exec job --hold 1h --ttl 1500ms -- touch "$HOME/ran" 2>"$HOME/said"
  wait_until test -e "$HOME/ran"
  ask SET "$key" other
  local status=0
  wait "$begun" || status=$?
  is "$status" 122
  has "$(cat "$HOME/said")" "lost while the command ran, or before --hold was over: taken"
  is "$(ask GET "$key")" other
}

@test "--max-runtime: SIGTERM, then SIGKILL after the grace, and 124; the lock is free" {
  cat_lives
  for kind in willing stubborn; do
    rm -f "$HOME/signals" "$HOME/beats" "$HOME/pid"
    run -124 belay exec job --ttl 30s --grace 500ms --max-runtime 3s -- "$HOME/lives" $kind
    has "$output" "belay: exec: ended: it ran for longer than --max-runtime"
    is "$(cat "$HOME/signals")" term
    is_gone "$(cat "$HOME/pid")"
    is "$(ask EXISTS "$key")" 0
  done
  run -0 belay exec job --max-runtime 1m -- true
  run -124 belay once k --max-runtime 300ms -- sleep 60
  run -0 belay once k -- true
  run -124 belay leader job --max-runtime 300ms -- sleep 60
}

@test "a lock that is lost before --max-runtime is over is lost: 122" {
  begin belay exec job --ttl 1500ms --max-runtime 30s -- sh -c 'touch "$HOME/ran"; exec sleep 60' 2>/dev/null
  wait_until test -e "$HOME/ran"
  ask SET "$key" other
  local status=0
  wait "$begun" || status=$?
  is "$status" 122
}

@test "-E: the status where someone else holds it" {
  ask SET "$key" other
  run -9 belay exec job --try -E 9 -- true
  run -0 belay exec job --wait 200ms --conflict-exit-code 0 -- touch "$HOME/ran"
  run -2 belay exec job --try -E 256 -- true
  [ ! -e "$HOME/ran" ]
  begin belay once k -- sh -c 'touch "$HOME/began"; exec sleep 60'
  wait_until test -e "$HOME/began"
  run -75 belay once k -E 75 -- true
}

@test "--as, and -v: who is waited for, and how long that lease runs" {
  begin belay exec job --as deploy@web-1 --ttl 1m -- sh -c 'touch "$HOME/ran"; exec sleep 60'
  wait_until test -e "$HOME/ran"
  has "$(belay ls)" deploy@web-1
  begin belay exec job -v -- true 2>"$HOME/said"
  wait_until grep -qE 'belay: exec: waiting for deploy@web-1, (1m|[0-9]+s) left' "$HOME/said"
  run -2 belay exec other --as "two words" -- true
  begin belay exec s --semaphore 1 --as first -- sh -c 'touch "$HOME/second"; exec sleep 60'
  wait_until test -e "$HOME/second"
  begin belay exec s --semaphore 1 -v -- true 2>"$HOME/said"
  wait_until grep -q 'waiting for first' "$HOME/said"
}

@test "a server that is lost while one waits is told, and that it is back" {
  ask SET "$key" other
  ask SAVE # the key is there again before the command can ask
  begin belay exec job --timeout 500ms -- true 2>"$HOME/said"
  local waits=$begun
  wait_until eval 'ask INFO commandstats | grep -q cmdstat_eval'
  kill -KILL "$server"
  wait "$server" || true
  wait_until grep -q "belay: exec: waiting: $BELAY_URL: " "$HOME/said"
  serve
  wait_until grep -q "belay: exec: waiting: the servers answer again" "$HOME/said"
  is "$(grep -c waiting "$HOME/said")" 2
  ask DEL "$key"
  wait "$waits"
}

@test "servers that were just started: quarantine is said, and for how long" {
  local urls=() i
  for i in 1 2 3; do
    start_server
    urls+=(--url "$BELAY_URL")
  done
  run -120 belay exec job --redlock --try "${urls[@]}" --ttl 40s --max-ttl 1h -- true
  [[ $output =~ of\ 3\ servers\ are\ in\ quarantine.*they\ vote\ in\ (1h|59m[0-9]+s) ]]
  begin belay exec job --redlock "${urls[@]}" --ttl 4s --max-ttl 4s -n young -- touch "$HOME/ran" 2>"$HOME/said"
  wait "$begun"
  [ -e "$HOME/ran" ]
}

@test "--quiet-unless-failed: what the command writes is shown only if it fails" {
  local script='echo out; echo error >&2; exit $0'
  run -0 belay exec job --quiet-unless-failed -- sh -c "$script" 0
  is "$output" ""
  run -3 --separate-stderr belay exec job --quiet-unless-failed -- sh -c "$script" 3
  is "$output" out
  is "$stderr" error
  run -143 --separate-stderr belay once k --quiet-unless-failed -- sh -c 'echo out; kill -TERM $$'
  is "$output" out
  run -0 belay once k --quiet-unless-failed -- sh -c "$script" 0
  is "$output" ""
  run -124 belay exec job --quiet-unless-failed --max-runtime 300ms -- sh -c 'echo out; exec sleep 60'
  has "$output" out
  run -122 --separate-stderr belay exec job --quiet-unless-failed -- sh -c "echo out; redis-cli -s $server_socket DEL '$key'"
  is "$output" $'out\n1'
  is "$(belay exec job --quiet-unless-failed -- sh -c 'ls /proc/$$/fd' x; belay exec job --quiet-unless-failed -- \
    sh -c 'ls /proc/$$/fd; exit 1' | xargs)" "$(sh -c 'ls /proc/$$/fd' | xargs)"
}

@test "--key: an exact key, shared with programs that know nothing of belay" {
  run -0 belay exec --key orders:lock -- redis-cli -s "$server_socket" EXISTS orders:lock
  is "$output" 1
  is "$(ask EXISTS orders:lock)" 0
  is "$(BELAY_FENCE=7 belay exec --key orders:lock -- sh -c 'echo "$BELAY_NAME<$BELAY_FENCE>"')" "orders:lock<>"
  ask SET orders:lock token NX PX 60000
  run -121 belay exec --key orders:lock --try -- true
  for line in "job --key k" "" "--key k --fair" "--key k --shared" "--key k --semaphore 2"; do
    run -2 belay exec $line -- touch "$HOME/ran"
  done
  [ ! -e "$HOME/ran" ]
}

@test "kill -9 of belay: SIGTERM at once, and SIGKILL after the grace, long before the lease ends" {
  cat_lives
  local kind status
  for kind in willing stubborn; do
    rm -f "$HOME/signals" "$HOME/asked" "$HOME/beats" "$HOME/pid"
    begin belay exec job --ttl 1h --grace 2s -- "$HOME/lives" $kind
    local killed last
    wait_until test -s "$HOME/pid"
    killed=$(now_ms)
    kill -KILL "$begun"
    wait_until test -s "$HOME/signals"
    wait_until is_gone "$(cat "$HOME/pid")"
    is "$(cat "$HOME/signals")" term
    last=$(tail -n 1 "$HOME/beats")
    [ $kind = willing ] || ((last - killed > 1500)) # it had its grace
    is_held
    ask DEL "$key"
  done
}

@test "kill -9 of belay when the lease is nearly over: no grace goes beyond it" {
  cat_lives
  begin belay exec job --ttl 3s --grace 1s --timeout 300ms -- "$HOME/lives" stubborn 2>/dev/null
  local end
  wait_until test -s "$HOME/beats"
  kill -STOP "$server"
  wait_until test -s "$HOME/signals"
  kill -KILL "$begun"
  wait_until is_gone "$(cat "$HOME/pid")"
  kill -CONT "$server"
  end=$(ask PEXPIRETIME "$key")
  ((end < 0 || $(tail -n 1 "$HOME/beats") < end))
}
