#!/usr/bin/env bats
# belay sweep.
load helper

set_up() { start_server; }

# fill N PREFIX: so many keys.
fill() { seq "$1" | sed "s/.*/SET $2& 1/" | redis-cli -s "$server_socket" >/dev/null; }

@test "no number is said of keys that nobody has counted" {
  belay count add a
  is "$(belay sweep 'counter::*' --yes)" "1 deleted of 1 that matched"
  is "$(belay sweep 'counter::*' --yes)" "0 deleted of 0 that matched"
}

@test "nothing is deleted that nobody said yes to" {
  fill 3 belay::old::
  run -2 belay sweep '*'
  has "$output" "check with --dry-run, then give --yes"
  run -2 belay sweep '*' --dry-run --yes
  run -2 belay sweep
  run -2 belay sweep a b --yes
  is "$(ask DBSIZE)" 3
}

@test "--dry-run writes what matches, and deletes nothing" {
  fill 3 belay::old::
  fill 2 belay::new::
  fill 2 other::old::
  run -0 belay sweep 'old::*' --dry-run
  is "$(sort <<<"$output")" $'belay::old::1\nbelay::old::2\nbelay::old::3'
  run -0 belay sweep 'new::1' --dry-run --json
  is "$output" '{"key":"belay::new::1"}'
  run -1 belay sweep 'none::*' --dry-run
  is "$output" ""
  is "$(ask DBSIZE)" 7
}

@test "--yes deletes that, in the namespace, and nothing else" {
  fill 3 belay::old::
  fill 2 belay::new::
  fill 2 other::old::
  run -0 belay sweep 'old::*' --yes
  has "$output" "3 deleted of 3 that matched"
  is "$(ask KEYS '*' | sort)" $'belay::new::1\nbelay::new::2\nother::old::1\nother::old::2'
  run -0 belay sweep '*' --yes --namespace other --json
  is "$(json 'o["pattern"], o["complete"], o["matched"], o["deleted"]')" "('*', True, 2, 2)"
  run -0 belay sweep 'old::*' --yes --quiet
  is "$output" ""
  is "$(ask DBSIZE)" 2
}

@test "what is held is not deleted, unless one says so" {
  fill 3 belay::k
  hold lock job web-1
  hold election chief web-1
  for pattern in '*' 'lock*' 'lock::{job}' 'l[o]ck*' '*job*' 'lock::{j*}::*' '*::holds' 'lock::*::queue'; do
    run -123 --separate-stderr belay sweep "$pattern" --yes
    is "$output" ""
    has "$stderr" "belay: sweep: nothing was deleted: "
    has "$stderr" "--held deletes that too"
  done
  has "$stderr" "1 of what matches is held, such as lock job; belay ls says by whom"
  run -123 on_terminal env TERM=xterm belay sweep '*' --yes
  has "$output" "2 of what matches are held, such as "
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
  is "$(ask DBSIZE)" 0
}

@test "a user who may delete, and not look who holds what" {
  fill 3 belay::k
  hold lock job web-1
  belay acl --user sweeper --namespace belay sweep 2>/dev/null | ask
  ask ACL SETUSER sweeper '>hunter2'
  export BELAY_USER=sweeper BELAY_PASSWORD=hunter2
  run -0 belay sweep 'k*' --yes
  run -123 --separate-stderr belay sweep '*' --yes
  has "$stderr" "cannot check what is held (--held skips the check): "
  run -0 belay sweep '*' --yes --held
}

@test "only keys of a type" {
  fill 2 belay::k
  ask RPUSH belay::k::list x
  run -0 belay sweep 'k*' --yes --type list
  has "$output" "1 deleted of 1"
  is "$(ask DBSIZE)" 2
}

@test "keys that other commands have made" {
  belay count add a --name one -q
  belay count add a --name two -q
  run -0 belay sweep 'counter::one::*' --yes
  is "$(belay count get a --name two)" 1
  run -1 belay count get a --name one
}

@test "any bytes in a key: shown, and given to nobody as orders" {
  ask SET $'belay::\e[31mred' 1
  run -0 belay sweep '*' --dry-run
  is "$output" 'belay::\x1b[31mred'
  run -0 belay sweep '*' --dry-run --json
  is "$(json 'ascii(o["key"])')" "'belay::\\x1b[31mred'"
}

@test "lines say how far it is" {
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

@test "ctrl-C stops it, and it says how far it came" {
  fill 20000 belay::k
  run -130 on_terminal --when " deleted" --type ^C belay sweep 'k*' --yes --keys-per-s 10000 --progress 200ms
  has "$output" "stopped: "
  local left deleted
  left=$(ask DBSIZE)
  deleted=$(sed -n 's/.*stopped: \([0-9]*\) deleted.*/\1/p' <<<"$output")
  ((left > 0 && left < 20000 && deleted > 0 && deleted <= 20000 - left))
  run -130 on_terminal --when "so far" --type ^C belay sweep '*' --yes --keys-per-s 1000 --progress 50ms
  has "$output" "stopped: 0 deleted"
  is "$(ask DBSIZE)" "$left"
}

@test "SIGTERM, where there is no terminal" {
  fill 20000 belay::k
  begin belay sweep 'k*' --yes --keys-per-s 2000 --progress 1ms --json >"$HOME/said"
  local pid=$begun status=0
  wait_until test -s "$HOME/said"
  kill -TERM "$pid"
  wait "$pid" || status=$?
  is "$status" 143
  output=$(tail -n 1 "$HOME/said")
  is "$(json 'o["complete"], 0 < o["deleted"] < 20000')" "(False, True)"
}

@test "no server: 120, when patience is over" {
  run -120 belay sweep '*' --yes --url redis://127.0.0.1:1 --timeout 100ms --patience 200ms
  has "$output" "belay: sweep: cannot continue: "
  is "${lines[0]}" "so far: 0 deleted of 0 that matched; up to 0 keys visited"
}

@test "a server that stands still for a while is waited for" {
  fill 5000 belay::k
  begin belay sweep 'k*' --yes --timeout 300ms --keys-per-s 5000 --progress 1ms >"$HOME/said"
  local pid=$begun
  wait_until test -s "$HOME/said"
  kill -STOP "$server"
  sleep 1
  kill -CONT "$server"
  wait "$pid"
  is "$(ask DBSIZE)" 0
}

@test "a full disk, and a reader that has gone" {
  fill 5000 belay::k
  run -123 bash -c 'belay sweep "*" --dry-run >/dev/full'
  has "$output" "not all of this could be written: No space left on device"
  run -0 --separate-stderr bash -c '{ belay sweep "*" --dry-run; echo $? >"$HOME/status"; } | head -n 1'
  is "${#lines[@]}" 1
  is "$(cat "$HOME/status")" 123
  run -123 bash -c 'belay sweep "k1" --yes >/dev/full'
  is "$(ask DBSIZE)" 4999
}
