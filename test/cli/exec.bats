#!/usr/bin/env bats
# belay exec: a command under a lock.
load helper

set_up() { start_server; }

key='belay::lock::{job}'

# Returns just after a renewal.
is_fresh() { [ "$(ask_server PTTL "$key")" -gt "$1" ]; }

@test "the status is that of the command, and the lock is free again" {
  run -0 belay exec job -- true
  run -7 belay exec job -- sh -c 'exit 7'
  run -143 belay exec job -- sh -c 'kill -TERM $$'
  is "$(ask_server EXISTS "$key")" 0
}

@test "the command inherits standard streams and open files" {
  run -0 --separate-stderr bash -c \
    'echo in | belay exec job -- sh -c "cat; echo err >&2; cat <&7" 7< <(echo seven)'
  is "$output" $'in\nseven'
  is "$stderr" err
  is "$(belay exec job -- sh -c 'ls /proc/$$/fd' | xargs)" "$(sh -c 'ls /proc/$$/fd' | xargs)"
}

@test "the environment has name, fencing number and deadline" {
  show='echo "$BELAY_NAME $BELAY_FENCE $BELAY_DEADLINE"'
  read -r name fence deadline < <(belay exec job --ttl 20s -- sh -c "$show")
  is "$name" job
  ((deadline > $(now_ms) + 1000 && deadline < $(now_ms) + 20000))
  read -r name later deadline < <(belay exec job -- sh -c "$show")
  ((later > fence))
  run -0 env BELAY_FENCE=7 belay exec job --semaphore 2 -- sh -c 'echo "<$BELAY_FENCE>"'
  is "$output" "<>"
}

@test "a missing command: 127; a file that cannot be run: 126; the lock is free" {
  run -127 belay exec job -- no-such-command
  is "$output" "belay: exec: no-such-command: No such file or directory"
  echo true >"$HOME/file"
  run -126 belay exec job -- "$HOME/file"
  has "$output" "Permission denied"
  run -126 belay exec job -- /
  is "$(ask_server EXISTS "$key")" 0
}

@test "invalid options are refused, and nothing is run" {
  for line in "--ttl 3s --grace 2s" "--try --wait 1s" "--shared --exclusive" \
    "--shared --semaphore 2" "--fair --shared" "--redlock" "--url unix:///a --url unix:///b" \
    "--redlock -u unix:///a -u unix:///b" "--ttl 10ms" "--semaphore 0" \
    "--redlock --ttl 40s -u unix:///a -u unix:///b -u unix:///c" \
    "--redlock --fair -u unix:///a -u unix:///b -u unix:///c"; do
    run -2 belay exec job $line -- touch "$HOME/ran"
  done
  run -2 belay exec job
  run -2 belay exec "" -- touch "$HOME/ran"
  [ ! -e "$HOME/ran" ]
}

@test "cron on three machines: exactly one run" {
  for i in 1 2 3; do
    start_command belay exec job --try --quiet -- sh -c 'echo ran >>"$HOME/runs"; sleep 3'
  done
  local statuses=
  for pid in "${started[@]:1}"; do
    local status=0
    wait "$pid" || status=$?
    statuses+="$status "
  done
  is "$(cat "$HOME/runs")" ran
  is "$(tr ' ' '\n' <<<"$statuses" | sort | xargs)" "0 121 121"
}

@test "held: 121, at once or after the wait; or acquired after the wait" {
  start_command belay exec job -- sh -c 'echo held >"$HOME/held"; read -r line <"$HOME/go"'
  mkfifo "$HOME/go"
  wait_until test -e "$HOME/held"
  run -121 belay exec job --try -- true
  is "$output" "belay: exec: not acquired: another process holds the lock"
  run -121 belay exec job --wait 200ms -- true
  run -121 belay exec job --try -q -- true
  is "$output" ""
  start_command belay exec job --wait 1m -- touch "$HOME/turn"
  sleep 0.2
  [ ! -e "$HOME/turn" ]
  echo >"$HOME/go"
  wait "$begun"
  [ -e "$HOME/turn" ]
}

@test "no server: 120 at once, with any --wait" {
  run -120 belay exec job --url unix:///nonexistent -- touch "$HOME/ran"
  has "$output" "no server could be reached"
  [ ! -e "$HOME/ran" ]
}

@test "shared, exclusive, semaphore, fair" {
  start_command belay exec job --shared -- sleep 60
  wait_until belay exec job --shared --try -- true
  wait_until eval '[ -n "$(ask_server KEYS "belay::rwlock*")" ]'
  run -121 belay exec job --exclusive --try -- true
  start_command belay exec two --semaphore 2 -- sleep 60
  wait_until eval '[ -n "$(ask_server KEYS "belay::semaphore*")" ]'
  run -0 belay exec two --semaphore 2 --try -- true
  start_command belay exec two --semaphore 2 -- touch "$HOME/second"
  wait_until test -e "$HOME/second"
  wait "$begun"
  start_command belay exec two --semaphore 2 -- sh -c 'touch "$HOME/third"; sleep 60'
  wait_until test -e "$HOME/third"
  run -121 belay exec two --semaphore 2 --try -- true
  run -0 belay exec line --fair -- true
}

@test "each signal reaches the command once" {
  # a background process of a shell ignores two of them
  start_command env --default-signal belay exec job -- bash -c '
    for s; do trap "echo $s >>$HOME/signals" $s; done
    touch "$HOME/ready"; until [ -e "$HOME/end" ]; do sleep 0.05; done; exit 5' \
    command HUP INT QUIT TERM USR1 USR2 WINCH 2>/dev/null
  wait_until test -e "$HOME/ready"
  for signal in HUP INT QUIT TERM USR1 USR2 WINCH; do
    kill -"$signal" "$begun"
    wait_until grep -q "$signal" "$HOME/signals"
  done
  touch "$HOME/end"
  local status=0
  wait "$begun" || status=$?
  is "$status" 5
  is "$(xargs <"$HOME/signals")" "HUP INT QUIT TERM USR1 USR2 WINCH"
}

@test "a signal is queued while the supervisor's channel is full" {
  start_command belay exec job --ttl 1h -- \
    bash -c 'trap : USR1; touch "$HOME/ready"; while :; do sleep 0.05; done'
  wait_until test -e "$HOME/ready"
  local supervisor status=0
  supervisor=$(pgrep -P "$begun")
  started+=("$supervisor")
  kill -STOP "$supervisor"
  python3 -c 'import os, signal, sys, time
for _ in range(1500):
    os.kill(int(sys.argv[1]), signal.SIGUSR1)
    time.sleep(0.001)' "$begun"
  kill -TERM "$begun"
  sleep 0.2
  kill -CONT "$supervisor"
  wait "$begun" || status=$?
  is "$status" 143
}

@test "SIGINT to the process group before the supervisor is ready: nothing is run" {
  local i n supervisor status signal
  for i in {1..20}; do
    ((i % 2)) && signal=INT || signal=TERM
    start_command env --default-signal setsid belay exec job -- sleep 60 2>>"$HOME/said"
    supervisor=
    for ((n = 0; n < 1000000; n++)); do # at once: to wait in between is too late
      read -r supervisor <"/proc/$begun/task/$begun/children" || [ -z "$supervisor" ] || break
    done
    kill -"$signal" -- "-$begun"
    status=0
    wait "$begun" || status=$?
    is "$status" $((128 + $(kill -l "$signal")))
  done
  is "$(cat "$HOME/said")" ""
}

@test "a signal that ends the command ends belay; a signal ends the wait" {
  start_command belay exec job -- sleep 60
  wait_until ask_server GET "$key"
  wait_until eval "[ \"\$(ask_server EXISTS '$key')\" = 1 ]"
  local first=$begun status=0
  start_command belay exec job -- touch "$HOME/ran"
  sleep 0.3
  kill -TERM "$begun"
  wait "$begun" || status=$?
  is "$status" 143
  kill -TERM "$first"
  status=0
  wait "$first" || status=$?
  is "$status" 143
  is "$(ask_server EXISTS "$key")" 0
  [ ! -e "$HOME/ran" ]
}

@test "SIGHUP ignored by the caller is ignored by the command" {
  run -0 bash -c 'trap "" HUP; belay exec job -- sh -c "kill -HUP \$\$; echo on"'
  is "$output" on
}

@test "ctrl-C at a terminal reaches the command once" {
  run -130 on_terminal --when begun --type ^C belay exec job -- \
    bash -c 'trap "echo INT >>$HOME/signals; n=1" INT
      echo begun; until [ -n "$n" ]; do sleep 0.1; done
      sleep 0.5; trap - INT; kill -INT $$'
  is "$(cat "$HOME/signals")" INT
  is "$(ask_server EXISTS "$key")" 0
}

@test "a command that reads from the terminal gets ctrl-C, and belay ends by SIGINT" {
  run -0 on_terminal --when name --type $'me\n' \
    belay exec job -- bash -c 'echo name; read -r n; echo "it is $n"'
  has "$output" "it is me"
  run -130 on_terminal --when name --type $'me\n' --when "it is" --type ^C \
    bash -c 'belay exec job -- bash -c "echo name; read -r n; echo it is \$n; sleep 60"
      echo went on'
  lacks "$output" "went on"
}

@test "stopped at a terminal and continued in time: the command goes on" {
  local typed=$'belay exec job --ttl 30s -- sh -c "echo be""gun; sleep 3; echo do""ne"\n'
  run -0 on_terminal --when '$ ' --type "$typed" \
    --when begun --type $'\x1a' --when Stopped --type $'fg\n' --when done --type $'exit 0\n' \
    env PS1='$ ' bash --norc --noprofile -i
  has "$output" done
}

@test "ctrl-Z without job control: nothing is stopped" {
  run -0 on_terminal --when begun --type $'\x1a' --when done --type "" \
    belay exec job --ttl 30s -- sh -c 'echo be""gun; sleep 2; echo do""ne'
  has "$output" done
}

@test "stopped at a terminal for too long: the command has ended, and 122" {
  cat_lives
  run -122 on_terminal --when '$ ' --type $'belay exec job --ttl 1500ms -- ~/lives\n' \
    --when alive --type $'\x1a' --when Stopped --type $'sleep 3; echo sl""ept\n' \
    --when slept --type $'fg\n' \
    --when "lost" --type $'exit $?\n' env PS1='$ ' bash --norc --noprofile -i
  is "$(cat "$HOME/signals")" term
  is_gone "$(cat "$HOME/pid")"
}

@test "a stopped server: SIGTERM, and all processes end before the lease does" {
  cat_lives
  for kind in stubborn willing; do
    rm -f "$HOME/signals" "$HOME/beats" "$HOME/pid"
    start_command belay exec job --ttl 3s --grace 1s --timeout 500ms -- \
      "$HOME/lives" $kind 2>"$HOME/said"
    local pid=$begun status=0 end last
    wait_until test -e "$HOME/beats"
    wait_until is_fresh 2900
    end=$(ask_server PEXPIRETIME "$key")
    kill -STOP "$server"
    wait "$pid" || status=$?
    last=$(tail -n 1 "$HOME/beats")
    kill -CONT "$server"
    is "$status" 122
    is "$(cat "$HOME/signals")" term
    is_gone "$(cat "$HOME/pid")"
    echo "# $kind: gone $((end - last)) ms before the lease was over" >&3
    ((last < end))
    has "$(cat "$HOME/said")" "no renewal was confirmed in time"
    wait_until eval "[ \"\$(ask_server EXISTS '$key')\" = 0 ]"
  done
}

@test "a stopped belay: SIGTERM, and all processes end before the lease does" {
  cat_lives
  start_command belay exec job --ttl 2s -- "$HOME/lives" stubborn 2>"$HOME/said"
  local status=0 end
  wait_until test -e "$HOME/beats"
  wait_until is_fresh 1900
  end=$(ask_server PEXPIRETIME "$key")
  kill -STOP "$begun"
  wait_until is_gone "$(cat "$HOME/pid")"
  (($(tail -n 1 "$HOME/beats") < end))
  kill -CONT "$begun"
  wait "$begun" || status=$?
  is "$status" 122
  grep -q "lost while the command ran" "$HOME/said"
}

@test "the lock gets another owner: SIGTERM, and 122" {
  cat_lives
  start_command belay exec job --ttl 1500ms -- "$HOME/lives" 2>"$HOME/said"
  local status=0
  wait_until test -e "$HOME/beats"
  ask_server SET "$key" other
  wait "$begun" || status=$?
  is "$status" 122
  is "$(cat "$HOME/signals")" term
  is_gone "$(cat "$HOME/pid")"
  has "$(cat "$HOME/said")" "belay: exec: lost while the command ran: taken"
  is "$(ask_server GET "$key")" other
}

@test "the lock was taken away during a short command: 122" {
  run -122 belay exec job -- redis-cli -s "$server_socket" DEL "$key"
  is "$output" $'1\nbelay: exec: lost while the command ran: taken'
  run -122 belay exec job -- redis-cli -s "$server_socket" SET "$key" other
  is "$(ask_server GET "$key")" other
}

@test "processes in another process group or session are killed too" {
  start_command belay exec job --ttl 1500ms -- sh -c 'timeout 60 sleep 60 &
    (trap "" TERM; setsid sh -c "sleep 60 & wait" & wait) & wait' 3>&-
  local pids
  all() { for p in $(pgrep -P "$1"); do echo "$p"; all "$p"; done; }
  two_sleep() {
    [ "$(for p in $(all "$begun"); do cat "/proc/$p/comm"; done | grep -c '^sleep$')" = 2 ]
  }
  wait_until two_sleep
  pids=$(all "$(pgrep -P "$begun")")
  ask_server SET "$key" other
  local status=0
  wait "$begun" || status=$?
  is "$status" 122
  for pid in $pids; do is_gone "$pid"; done
}

@test "processes in another session get SIGTERM first" {
  cat >"$HOME/tidies" <<'END'
#!/bin/bash
trap 'echo term >"$HOME/signals"; exit' TERM
touch "$HOME/ready"
while :; do sleep 0.05; done
END
  chmod +x "$HOME/tidies"
  start_command belay exec job --ttl 3s -- \
    bash -c 'trap : TERM; setsid "$HOME/tidies" & while kill -0 $!; do sleep 0.05; done' 2>/dev/null
  wait_until test -e "$HOME/ready"
  ask_server SET "$key" other
  local status=0
  wait "$begun" || status=$?
  is "$status" 122
  is "$(cat "$HOME/signals")" term
}

@test "a process that cannot be killed does not keep the others alive" {
  [ "$(id -u)" = 0 ] || skip "who cannot kill another user's process is made by root"
  cat >"$HOME/works" <<'END'
#!/bin/bash
trap '' TERM
setsid sleep 61 & echo $! >"$HOME/worker"
setpriv --reuid 65534 --clear-groups sleep 62 & echo $! >"$HOME/others"
"$@"
END
  chmod +x "$HOME/works"
  local kind
  for kind in wait "exec setpriv --reuid 65534 --clear-groups sleep 63"; do
    rm -f "$HOME/worker" "$HOME/others"
    start_command setpriv --bounding-set -kill belay exec job --ttl 1500ms -- \
      "$HOME/works" $kind 2>"$HOME/said"
    wait_until test -s "$HOME/others"
    started+=("$(cat "$HOME/others")" "$(pgrep -P "$(pgrep -P "$begun")" | head -n 1)")
    ask_server SET "$key" other
    wait_until is_gone "$(cat "$HOME/worker")"
    kill -0 "$(cat "$HOME/others")"
    run -1 is_gone "$begun" # it waits for what is left
    ask_server DEL "$key"
  done
}

@test "terminal modes are restored when the command is killed" {
  run -0 on_terminal --when name --type $'me\n' \
    bash -c 'belay exec job -- bash -c "echo name; read -r n
    stty raw -echo; kill -KILL \$\$"; stty -a'
  has "$output" " echo "
  has "$output" " icanon"
}

@test "kill -9 of belay, or of the supervisor: no process of the command is left" {
  cat_lives
  for victim in belay supervisor; do
    rm -f "$HOME/beats" "$HOME/pid"
    start_command belay exec job -- "$HOME/lives" stubborn 2>"$HOME/said"
    wait_until test -s "$HOME/pid"
    local pid=$begun
    [ $victim = belay ] || pid=$(pgrep -P "$begun")
    kill -KILL "$pid"
    wait_until is_gone "$(cat "$HOME/pid")"
    wait "$begun" || true
    ask_server DEL "$key"
  done
  has "$(cat "$HOME/said")" "the supervisor of the command is gone, so the command was killed"
}

@test "belay's process group is stopped or killed: no process of the command is left" {
  cat_lives
  for signal in STOP KILL; do
    rm -f "$HOME/beats" "$HOME/pid"
    start_command setsid "$(command -v belay)" exec job --ttl 2s -- \
      "$HOME/lives" stubborn 2>"$HOME/said"
    local status=0 end
    wait_until test -e "$HOME/beats"
    wait_until is_fresh 1900
    end=$(ask_server PEXPIRETIME "$key")
    kill -"$signal" -- "-$begun"
    wait_until is_gone "$(cat "$HOME/pid")"
    (($(tail -n 1 "$HOME/beats") < end))
    kill -CONT "$begun" || [ $signal = KILL ]
    wait "$begun" || status=$?
    is "$status" "$([ $signal = KILL ] && echo 137 || echo 122)"
    wait_until eval "[ \"\$(ask_server EXISTS '$key')\" = 0 ]"
  done
}

@test "a stopped supervisor: belay ends the command" {
  cat_lives
  start_command belay exec job --ttl 2s -- "$HOME/lives" stubborn 2>"$HOME/said"
  local status=0 supervisor
  wait_until test -e "$HOME/beats"
  supervisor=$(pgrep -P "$begun")
  started+=("$supervisor")
  kill -STOP "$supervisor"
  ask_server SET "$key" other
  wait "$begun" || status=$?
  is "$status" 122
  is_gone "$(cat "$HOME/pid")"
}

# slow_path N: put N folders on the PATH in which each lookup takes about a millisecond.
slow_path() {
  local dots i
  mkdir -p "$HOME/way"
  dots=$(printf './%.0s' {1..2000})
  ln -sfn "$dots." "$HOME/way/0"
  for i in {1..38}; do
    ln -sfn "$dots$((i - 1))" "$HOME/way/$i"
  done
  ln -sfn 38 "$HOME/way/l"
  slow=(env -C "$HOME/way" PATH="$(printf 'l:%.0s' $(seq "$1"))$PATH" "$(command -v belay)")
}

@test "a slow execvp(): the command starts while the lease is renewed, and not after a loss" {
  slow_path 3000
  run -0 "${slow[@]}" exec job --ttl 1500ms -- echo ran
  is "$output" ran
  slow_path 50000
  start_command "${slow[@]}" exec job --ttl 1500ms -- touch "$HOME/ran" 2>"$HOME/said"
  local status=0
  wait_until eval "[ \"\$(ask_server EXISTS '$key')\" = 1 ]"
  ask_server SET "$key" other
  wait_until is_gone "$begun"
  wait "$begun" || status=$?
  is "$status" 122
  [ ! -e "$HOME/ran" ]
  ask_server DEL "$key"
  start_command "${slow[@]}" exec job --ttl 1500ms -- touch "$HOME/ran"
  wait_until eval "[ \"\$(ask_server EXISTS '$key')\" = 1 ]"
  local supervisor
  wait_until eval 'supervisor=$(pgrep -P "$begun")'
  kill -KILL "$begun"
  wait_until is_gone "$supervisor"
  [ ! -e "$HOME/ran" ]
}

@test "a supervisor that was stopped uses belay's last limits" {
  start_command belay exec job --ttl 3s -- \
    sh -c 'touch "$HOME/ready"; until [ -e "$HOME/end" ]; do sleep 0.05; done; exit 5'
  wait_until test -e "$HOME/ready"
  local supervisor status=0
  supervisor=$(pgrep -P "$begun")
  started+=("$supervisor")
  kill -STOP "$supervisor"
  sleep 4
  wait_until is_fresh 2900
  kill -CONT "$supervisor"
  sleep 0.5
  touch "$HOME/end"
  wait "$begun" || status=$?
  is "$status" 5
}

@test "belay was stopped until the lease was over: the command is not started" {
  belay supervise 9 0 1 2 touch "$HOME/ran" 9<>"$HOME/said"
  [ ! -e "$HOME/ran" ]
}

@test "the terminal belongs to the process that reads from it: a pager after belay" {
  run -0 on_terminal --when more --type $'yes\n' \
    bash -c 'belay exec job -- echo more | { cat; read -r x </dev/tty; echo "it was $x"; }'
  has "$output" "it was yes"
}

# Compares the best of many runs with the best of many pings, because the machine may be busy.
@test "start, free lock and supervisor take at most 10 ms more than one ping" {
  local best=999999999 control=999999999 from to i
  for ((i = 0; i < 300 && (i < 20 || best - control >= 10000000); i++)); do
    from=$(date +%s%N)
    to=$(belay exec job -- date +%s%N)
    best=$((to - from < best ? to - from : best))
    from=$(date +%s%N)
    to=$(belay count add n >/dev/null && date +%s%N)
    control=$((to - from < control ? to - from : control))
  done
  echo "# from the shell to the command: $((best / 1000)) us;" \
    "one question: $((control / 1000)) us" >&3
  ((best - control < 10000000))
}
