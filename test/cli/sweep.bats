#!/usr/bin/env bats
# belay sweep.
load helper

set_up() { start_server; }

# fill N PREFIX: create N keys.
fill() { seq "$1" | sed "s/.*/SET $2& 1/" | redis-cli -s "$server_socket" >/dev/null; }

@test "progress has no estimate of the number of keys" {
  belay count add a
  is "$(belay sweep 'counter::*' --yes)" "1 deleted of 1 that matched"
  is "$(belay sweep 'counter::*' --yes)" "0 deleted of 0 that matched"
}

@test "without --yes or --dry-run nothing is deleted" {
  fill 3 belay::old::
  run -2 belay sweep '*'
  has "$output" "check with --dry-run, then give --yes"
  run -2 belay sweep '*' --dry-run --yes
  run -2 belay sweep
  run -2 belay sweep a b --yes
  is "$(ask_server DBSIZE)" 3
}

@test "--dry-run prints the matching keys, and deletes nothing" {
  fill 3 belay::old::
  fill 2 belay::new::
  fill 2 other::old::
  run -0 belay sweep 'old::*' --dry-run
  is "$(sort <<<"$output")" $'belay::old::1\nbelay::old::2\nbelay::old::3'
  run -0 belay sweep 'new::1' --dry-run --json
  is "$output" '{"key":"belay::new::1"}'
  run -1 belay sweep 'none::*' --dry-run
  is "$output" ""
  is "$(ask_server DBSIZE)" 7
}

@test "--yes deletes the matching keys of the namespace only" {
  fill 3 belay::old::
  fill 2 belay::new::
  fill 2 other::old::
  run -0 belay sweep 'old::*' --yes
  has "$output" "3 deleted of 3 that matched"
  is "$(ask_server KEYS '*' | sort)" $'belay::new::1\nbelay::new::2\nother::old::1\nother::old::2'
  run -0 belay sweep '*' --yes --namespace other --json
  is "$(json 'o["pattern"], o["complete"], o["matched"], o["deleted"]')" "('*', True, 2, 2)"
  run -0 belay sweep 'old::*' --yes --quiet
  is "$output" ""
  is "$(ask_server DBSIZE)" 2
}

@test "held locks are not deleted without --held" {
  fill 3 belay::k
  hold lock job web-1
  hold election chief web-1
  for pattern in '*' 'lock*' 'lock::{job}' 'l[o]ck*' '*job*' 'lock::{j*}::*' '*::holds' \
    'lock::*::queue'; do
    run -123 --separate-stderr belay sweep "$pattern" --yes
    is "$output" ""
    has "$stderr" "belay: sweep: nothing was deleted: "
    has "$stderr" "--held deletes these too"
  done
  has "$stderr" "1 matching object is held, such as lock job; belay ls lists the holders"
  run -123 on_terminal env TERM=xterm belay sweep '*' --yes
  has "$output" "2 matching objects are held, such as "
  run -0 belay ls --json
  is "$(json 'o["name"]' | sort)" $'chief\njob'
  run -0 belay sweep 'k*' --yes
  has "$output" "3 deleted of 3"
  run -0 belay sweep 'semaphore*' --yes
  run -123 belay sweep '*' --yes --type hash # some of what belongs to it are
  run -0 belay sweep '*::{job}::nothing' --yes --held
  run -2 belay sweep '*' --dry-run --held
  run -0 belay sweep 'lock::{job}' --yes --held
  has "$output" "1 deleted of 1"
  run -0 belay ls --json
  is "$(json 'o["name"]')" chief
  run -0 on_terminal env TERM=xterm belay sweep '*' --yes --held
  is "$(ask_server DBSIZE)" 0
}

@test "a user with the rights of sweep, without those of held" {
  fill 3 belay::k
  hold lock job web-1
  belay acl --user sweeper --namespace belay sweep 2>/dev/null | ask_server
  ask_server ACL SETUSER sweeper '>hunter2'
  export BELAY_USER=sweeper BELAY_PASSWORD=hunter2
  run -0 belay sweep 'k*' --yes
  run -123 --separate-stderr belay sweep '*' --yes
  has "$stderr" "cannot check what is held (--held skips the check): "
  run -0 belay sweep '*' --yes --held
}

@test "--type" {
  fill 2 belay::k
  ask_server RPUSH belay::k::list x
  run -0 belay sweep 'k*' --yes --type list
  has "$output" "1 deleted of 1"
  is "$(ask_server DBSIZE)" 2
}

@test "keys of other commands" {
  belay count add a --name one -q
  belay count add a --name two -q
  run -0 belay sweep 'counter::one::*' --yes
  is "$(belay count get a --name two)" 1
  run -1 belay count get a --name one
}

@test "any bytes in a key: escaped in plain output" {
  ask_server SET $'belay::\e[31mred' 1
  run -0 belay sweep '*' --dry-run
  is "$output" 'belay::\x1b[31mred'
  run -0 belay sweep '*' --dry-run --json
  is "$(json 'ascii(o["key"])')" "'belay::\\x1b[31mred'"
}

@test "lines of progress" {
  fill 5000 belay::k
  run -0 belay sweep '*' --yes --keys-per-s 5000 --progress 200ms
  has "${lines[0]}" "so far: "
  has "${lines[-1]}" "5000 deleted of 5000 that matched"
  lacks "${lines[-1]}" "so far"
  fill 5000 belay::k
  run -0 belay sweep '*' --yes --keys-per-s 5000 --progress 200ms --json
  is "$(json 'o["complete"]' | sort -u)" $'False\nTrue'
  lacks "$output" $'\e'
}

@test "ctrl-C stops it, and it prints its progress" {
  fill 20000 belay::k
  run -130 on_terminal --when " deleted" --type ^C \
    belay sweep 'k*' --yes --keys-per-s 10000 --progress 200ms
  has "$output" "stopped: "
  local left deleted
  left=$(ask_server DBSIZE)
  deleted=$(sed -n 's/.*stopped: \([0-9]*\) deleted.*/\1/p' <<<"$output")
  ((left > 0 && left < 20000 && deleted > 0 && deleted <= 20000 - left))
  run -130 on_terminal --when "so far" --type ^C \
    belay sweep '*' --yes --keys-per-s 1000 --progress 50ms
  has "$output" "stopped: 0 deleted"
  is "$(ask_server DBSIZE)" "$left"
}

@test "SIGTERM without a terminal" {
  fill 20000 belay::k
  start_command belay sweep 'k*' --yes --keys-per-s 2000 --progress 1ms --json >"$HOME/said"
  local pid=$begun status=0
  wait_until test -s "$HOME/said"
  kill -TERM "$pid"
  wait "$pid" || status=$?
  is "$status" 143
  output=$(tail -n 1 "$HOME/said")
  is "$(json 'o["complete"], 0 < o["deleted"] < 20000')" "(False, True)"
}

@test "no server: 120, after --patience" {
  run -120 belay sweep '*' --yes --url redis://127.0.0.1:1 --timeout 100ms --patience 200ms
  has "$output" "belay: sweep: cannot continue: "
  is "${lines[0]}" "so far: 0 deleted of 0 that matched; up to 0 keys visited"
}

@test "a stopped server: the sweep goes on when it continues" {
  fill 5000 belay::k
  start_command belay sweep 'k*' --yes --timeout 300ms --keys-per-s 5000 --progress 1ms \
    >"$HOME/said"
  local pid=$begun
  wait_until test -s "$HOME/said"
  kill -STOP "$server"
  sleep 1
  kill -CONT "$server"
  wait "$pid"
  is "$(ask_server DBSIZE)" 0
}

@test "a full disk, and a reader that closed the pipe" {
  fill 5000 belay::k
  run -123 bash -c 'belay sweep "*" --dry-run >/dev/full'
  has "$output" "the output could not be written: No space left on device"
  run -0 --separate-stderr \
    bash -c '{ belay sweep "*" --dry-run; echo $? >"$HOME/status"; } | head -n 1'
  is "${#lines[@]}" 1
  is "$(cat "$HOME/status")" 123
  run -123 bash -c 'belay sweep "k1" --yes >/dev/full'
  is "$(ask_server DBSIZE)" 4999
}
