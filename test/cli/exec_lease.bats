#!/usr/bin/env bats
# belay exec: the command and the lock during faults of servers, terminals and signals.
load helper

set_up() { start_server; }

key='belay::lock::{job}'

# three_servers: start them. Sets their --url options and process ids.
three_servers() {
  local i
  urls=() pids=()
  for i in 1 2 3; do
    start_server
    urls+=(--url "$BELAY_URL")
    pids+=("$server")
  done
}

@test "SIGTERM when the grace begins; all processes end before BELAY_DEADLINE" {
  cat_lives
  local status=75 i deadline asked last
  for ((i = 0; i < 5 && status == 75; i++)); do
    status=0
    # No renewal yet: the first one is due after 3 s. So BELAY_DEADLINE is the end of the lease.
    belay exec job --ttl 9s --grace 3s -- \
      sh -c 'kill -STOP "$1"; echo $BELAY_DEADLINE >"$HOME/deadline"
      [ $(($(date +%s%3N) + 6000)) -lt $BELAY_DEADLINE ] || exit 75
      exec "$HOME/lives" stubborn' sh "$server" 2>"$HOME/said" || status=$?
    kill -CONT "$server"
  done
  is "$status" 122
  has "$(cat "$HOME/said")" "lost while the command ran: no renewal was confirmed in time"
  is "$(cat "$HOME/signals")" term
  is_gone "$(cat "$HOME/pid")"
  deadline=$(cat "$HOME/deadline") asked=$(cat "$HOME/asked") last=$(tail -n 1 "$HOME/beats")
  echo "# asked to end $((deadline - asked)) ms before the deadline," \
    "gone $((deadline - last)) ms before it" >&3
  ((asked > deadline - 3000 - 150)) # two clocks are read, one after the other
  ((asked < last && last < deadline))
}

@test "most of three servers are stopped: the command ends in time; one of them: it runs on" {
  cat_lives
  three_servers
  local with=(--redlock --max-ttl 3s --ttl 3s --timeout 500ms)
  local status=0 pid before stopped
  sleep 4 # A server votes when it runs for --max-ttl and a margin. All three must vote here.
  start_command belay exec job "${with[@]}" "${urls[@]}" -- "$HOME/lives" stubborn 2>"$HOME/said"
  pid=$begun
  wait_until test -e "$HOME/beats"
  kill -STOP "${pids[0]}"
  before=$(now_ms)
  lasts() { [ "$(ask_server PEXPIRETIME "$key")" -gt $((before + 6000)) ]; }
  wait_until lasts || { cat "$HOME/said"; false; } # renewed for more than one lease since
  run -1 is_gone "$pid"
  kill -STOP "${pids[1]}"
  stopped=$(now_ms)
  wait "$pid" || status=$?
  is "$status" 122
  is "$(cat "$HOME/signals")" term
  is_gone "$(cat "$HOME/pid")"
  has "$(cat "$HOME/said")" \
    "belay: exec: lost while the command ran: no renewal was confirmed in time"
  ((stopped < $(tail -n 1 "$HOME/beats") && $(tail -n 1 "$HOME/beats") < stopped + 3000))
}

@test "three servers, of which one is away" {
  three_servers
  kill -KILL "${pids[2]}"
  wait_until belay exec job --redlock --max-ttl 1s --ttl 1s "${urls[@]}" -- touch "$HOME/ran"
  [ -e "$HOME/ran" ]
  kill -KILL "${pids[1]}"
  run -120 belay exec job --redlock --max-ttl 1s --ttl 1s "${urls[@]}" -- true
}

@test "--fair: first come, first served" {
  hold fair line me
  local holder=$begun i
  waiting() {
    [ "$(belay show line --json |
      python3 -c 'import json, sys; print(json.load(sys.stdin)["waiting"])')" = "$1" ]
  }
  for i in 1 2 3 4 5; do
    start_command belay exec line --fair -- sh -c "echo $i >>\$HOME/order"
    wait_until waiting "$i"
  done
  kill -TERM "$holder"
  for i in 1 2 3 4 5; do
    wait "${started[-$i]}"
  done
  is "$(xargs <"$HOME/order")" "1 2 3 4 5"
}

# ---- waiting ----

# True if a waiter has asked for the lock.
has_asked() { ask_server INFO commandstats | grep -q cmdstat_eval; }

@test "the server is lost during the wait: 120, or 123 if the lock may have been granted" {
  ask_server SET "$key" other
  for signal in STOP KILL; do
    ask_server CONFIG RESETSTAT
    start_command belay exec job --wait 3s --timeout 500ms -- touch "$HOME/ran" 2>"$HOME/said"
    local pid=$begun status=0
    wait_until has_asked
    kill -"$signal" "$server"
    wait "$pid" || status=$?
    has "$(cat "$HOME/said")" "belay: exec: cannot acquire: "
    if [ $signal = STOP ]; then
      kill -CONT "$server"
      [ "$status" = 120 ] || [ "$status" = 123 ]
    else
      is "$status" 120
      has "$(cat "$HOME/said")" "no server could be reached"
    fi
  done
  [ ! -e "$HOME/ran" ]
}

@test "the server is lost during the wait, and returns in time: one waiter gets the lock" {
  ask_server SET "$key" other
  start_command belay exec job --wait 1m --timeout 500ms -- touch "$HOME/ran"
  wait_until has_asked
  kill -STOP "$server"
  sleep 1.5 # longer than an answer may take
  run -1 is_gone "$begun"
  kill -CONT "$server"
  ask_server DEL "$key"
  wait "$begun"
  [ -e "$HOME/ran" ]

  rm "$HOME/ran"
  ask_server SET "$key" other
  ask_server CONFIG RESETSTAT
  start_command belay exec job --wait 1m --timeout 500ms -- touch "$HOME/ran"
  local pid=$begun
  wait_until has_asked
  kill -KILL "$server"
  wait "$server" || true
  sleep 1.5
  run -1 is_gone "$pid"
  [ ! -e "$HOME/ran" ]
  serve # with nothing in it
  wait "$pid"
  [ -e "$HOME/ran" ]
}

# ---- stopped ----

@test "ctrl-Z: the command is stopped and the lease not renewed; fg continues both" {
  cat_lives
  mkfifo "$HOME/go"
  start_command on_terminal \
    --when '$ ' --type $'belay exec job --ttl 12s --grace 100ms -- ~/lives\n' \
    --when alive --type ^Z \
    --when Stopped --type $'touch ~/stopped; read -r x <~/go; fg; exit $?\n' \
    env PS1='$ ' bash --norc --noprofile -i >"$HOME/said"
  local pid=$begun beats end status=0
  wait_until test -e "$HOME/stopped"
  started+=("$(cat "$HOME/pid")")
  beats=$(wc -l <"$HOME/beats") end=$(ask_server PEXPIRETIME "$key")
  sleep 4.5 # a renewal is due when a third of the lease is over
  is "$(wc -l <"$HOME/beats")" "$beats"
  is "$(ask_server PEXPIRETIME "$key")" "$end"
  echo >"$HOME/go"
  more() {
    [ "$(wc -l <"$HOME/beats")" -gt "$beats" ] &&
      [ "$(ask_server PEXPIRETIME "$key")" -gt "$end" ]
  }
  wait_until more
  kill -TERM "$(pgrep -x belay -P "$(pgrep -x bash -P "$(pgrep -P "$pid")")" | head -n 1)"
  wait_until test -e "$HOME/signals"
  kill -KILL "${started[-1]}" # what the command leaves behind is let be
  wait "$pid" || status=$?
  is "$status" 0
  is "$(cat "$HOME/signals")" term
  is "$(ask_server EXISTS "$key")" 0
}

@test "the release ignores one signal; a second one ends belay" {
  expect_released 'belay::lock*}' belay exec job
}

# ---- taken away ----

# The next renewal is due in twenty minutes.
@test "belay break while the command runs: SIGTERM at once" {
  cat_lives
  local status=0 kind
  for kind in "" "--shared" "--exclusive" "--semaphore 2" "--fair"; do
    rm -f "$HOME/signals" "$HOME/beats" "$HOME/pid"
    status=0
    start_command belay exec job $kind --ttl 1h --grace 20s -- "$HOME/lives" 2>"$HOME/said"
    local pid=$begun
    wait_until test -s "$HOME/beats"
    run -0 belay break job --yes
    wait_until is_gone "$pid"
    wait "$pid" || status=$?
    is "$status" 122
    is "$(cat "$HOME/signals")" term
    has "$(cat "$HOME/said")" "belay: exec: lost while the command ran: taken"
  done
}

@test "a server restarts without its data: the command ends at once" {
  cat_lives
  local status=0
  start_command belay exec job --ttl 1h --grace 20s -- "$HOME/lives" 2>"$HOME/said"
  local pid=$begun
  wait_until test -s "$HOME/beats"
  kill -KILL "$server"
  wait "$server" || true
  serve
  wait_until is_gone "$pid"
  wait "$pid" || status=$?
  is "$status" 122
  is "$(cat "$HOME/signals")" term
  has "$(cat "$HOME/said")" "belay: exec: lost while the command ran: taken"
}
