#!/usr/bin/env bats
# belay exec: its options and messages.
load helper

set_up() { start_server; }

key='belay::lock::{job}'
is_held() { [ "$(ask_server EXISTS "$key")" = 1 ]; }

@test "--hold: the lock is kept after the command has ended; the status is the command's" {
  start_command belay exec job --try --hold 6s -- sh -c 'touch "$HOME/ran"; exit 3'
  local first=$begun status=0
  wait_until test -e "$HOME/ran"
  run -121 belay exec job --try --hold 6s -- touch "$HOME/twice"
  wait "$first" || status=$?
  is "$status" 3
  [ ! -e "$HOME/twice" ]
  is "$(ask_server EXISTS "$key")" 0
}

@test "--hold renews the lease, and counts from the grant" {
  local from to
  from=$(now_ms)
  belay exec job --hold 2s --ttl 1s -- sleep 1
  to=$(now_ms)
  ((to - from >= 2000))
  start_command belay exec job --hold 1m --ttl 600ms -- touch "$HOME/ran"
  wait_until test -e "$HOME/ran"
  sleep 1.5
  is_held
  kill -TERM "$begun"
  wait "$begun"
  is "$(ask_server EXISTS "$key")" 0
}

@test "--hold is ignored if the command cannot be run or a signal ended it" {
  run -127 timeout 30 belay exec job --hold 1h -- no-such-command
  start_command belay exec job --hold 1h -- sh -c 'touch "$HOME/ran"; exec sleep 60'
  wait_until test -e "$HOME/ran"
  kill -TERM "$begun"
  local status=0
  wait "$begun" || status=$?
  is "$status" 143
  is "$(ask_server EXISTS "$key")" 0
}

@test "a lock that is lost before --hold is over: 122" {
  start_command belay exec job --hold 1h --ttl 1500ms -- touch "$HOME/ran" 2>"$HOME/said"
  wait_until test -e "$HOME/ran"
  ask_server SET "$key" other
  local status=0
  wait "$begun" || status=$?
  is "$status" 122
  has "$(cat "$HOME/said")" "lost while the command ran, or before --hold was over: taken"
  is "$(ask_server GET "$key")" other
}

@test "-E: the status if another process holds the lock" {
  ask_server SET "$key" other
  run -9 belay exec job --try -E 9 -- true
  run -0 belay exec job --wait 200ms --conflict-exit-code 0 -- touch "$HOME/ran"
  run -2 belay exec job --try -E 256 -- true
  [ ! -e "$HOME/ran" ]
  start_command belay once k -- sh -c 'touch "$HOME/began"; exec sleep 60'
  wait_until test -e "$HOME/began"
  run -75 belay once k -E 75 -- true
}

@test "--as: the label is in belay ls" {
  start_command belay exec job --as deploy@web-1 --ttl 1m -- \
    sh -c 'touch "$HOME/ran"; exec sleep 60'
  wait_until test -e "$HOME/ran"
  has "$(belay ls)" deploy@web-1
  run -2 belay exec other --as "two words" -- true
}

@test "a server is lost during the wait: reported, and its return too" {
  ask_server SET "$key" other
  ask_server SAVE # the key is there again before the command can ask
  start_command belay exec job --timeout 500ms -- true 2>"$HOME/said"
  local waits=$begun
  wait_until eval 'ask_server INFO commandstats | grep -q cmdstat_eval'
  kill -KILL "$server"
  wait "$server" || true
  wait_until grep -q "belay: exec: waiting: $BELAY_URL: " "$HOME/said"
  serve
  wait_until grep -q "belay: exec: waiting: the servers answer again" "$HOME/said"
  is "$(grep -c waiting "$HOME/said")" 2
  ask_server DEL "$key"
  wait "$waits"
}

@test "servers that were just started: quarantine is reported, with its time" {
  local urls=() i
  for i in 1 2 3; do
    start_server
    urls+=(--url "$BELAY_URL")
  done
  run -120 belay exec job --redlock --try "${urls[@]}" --ttl 40s --max-ttl 1h -- true
  [[ $output =~ in\ quarantine\ after\ its\ start,\ votes\ in\ (1h|59m[0-9]+s) ]]
  start_command belay exec job --redlock "${urls[@]}" --ttl 4s --max-ttl 4s -n young -- \
    touch "$HOME/ran" 2>"$HOME/said"
  wait "$begun"
  [ -e "$HOME/ran" ]
}

@test "--key: an exact key, shared with other programs" {
  run -0 belay exec --key orders:lock -- redis-cli -s "$server_socket" EXISTS orders:lock
  is "$output" 1
  is "$(ask_server EXISTS orders:lock)" 0
  is "$(BELAY_FENCE=7 belay exec --key orders:lock -- sh -c 'echo "$BELAY_NAME<$BELAY_FENCE>"')" \
    "orders:lock<>"
  ask_server SET orders:lock token NX PX 60000
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
    start_command belay exec job --ttl 1h --grace 2s -- "$HOME/lives" $kind
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
    ask_server DEL "$key"
  done
}

@test "kill -9 of belay near the end of the lease: the grace ends with the lease" {
  cat_lives
  start_command belay exec job --ttl 3s --grace 1s --timeout 300ms -- \
    "$HOME/lives" stubborn 2>/dev/null
  local end
  wait_until test -s "$HOME/beats"
  kill -STOP "$server"
  wait_until test -s "$HOME/signals"
  kill -KILL "$begun"
  wait_until is_gone "$(cat "$HOME/pid")"
  kill -CONT "$server"
  end=$(ask_server PEXPIRETIME "$key")
  ((end < 0 || $(tail -n 1 "$HOME/beats") < end))
}
