#!/usr/bin/env bats
# The command line, results, errors and the end of all commands.
load helper

# ---- the command line ----

@test "an unknown option or command" {
  run -2 belay count dele
  has "$output" "add, get, set or delete"
  run -2 belay count add --jsno k
  is "$output" "belay: count add: there is no option --jsno: see belay count add --help"
  run -2 belay count add --xyzzy k
  has "$output" "see belay count add --help"
  run -2 belay xyzzy
  has "$output" "see belay help"
  run -2 belay --json count get k
  has "$output" "options stand behind the command's name"
  run -2 belay
}

@test "options stand anywhere after the command's name, in all forms" {
  start_server
  is "$(belay count add --json k 3)" '{"key":"k","value":"3","applied":true}'
  is "$(belay count add k --max=10 -3 --json)" '{"key":"k","value":"0","applied":true}'
  unset BELAY_URL
  is "$(belay count add -uunix://"$server_socket" k)" 1
  is "$(belay count add -u "unix://$server_socket" -n "other::part" k)" 1
  run -0 belay count add -qu "unix://$server_socket" -- k
  is "$output" ""
  run -0 belay count add --url "unix://$server_socket" -- --json
  is "$output" 1
}

@test "an option is given twice: the last one counts" {
  start_server
  local url=$BELAY_URL none=unix:///nonexistent
  unset BELAY_URL
  is "$(belay count add k -u "$none" --url "$url" --max 1 --max=5 3)" 3
  is "$(belay count add k -u "$none" -u "$url" --timeout 1ms --timeout 5s)" 4
  run -120 belay count get k -u "$url" -u "$none" --timeout 100ms
  # A command for several servers takes each --url.
  run -2 belay exec job -u "$url" -u "$url" -- true
  has "$output" "--redlock needs several servers"
}

@test "an invalid value: an error without the value" {
  local secret=redis://me:hunter2@nowhere
  for line in "count add k --max $secret" "count add k --ttl $secret" "count add k --$secret" \
    "count add k -p$secret" "count $secret" "$secret" "count add k --json=$secret" \
    "count add k --timeout $secret" "count add k --ttl" \
    "count add k --ttl 0" "count add k --ttl 1y" "count add k --ttl 30" \
    "count get" "count add a 1 2" "completion tcsh" "version x" "--json" "count --json" \
    "count get k --url http://me:hunter2@nowhere" \
    "count get k --namespace 1::2::3::4::5::6::7::8::9" "count get k --namespace a:::::b"; do
    run belay $line
    [ "$status" = 2 ] || { echo "status $status: $line: $output" && false; }
    has "$output" "belay: "
    lacks "$output" hunter2
  done
}

# ---- servers ----

@test "no server: 120, and the reason" {
  run -120 belay count get k --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: count get: cannot read: no server could be reached"
  run -120 belay count get k --url unix:///nonexistent/socket --timeout 100ms
  run -120 belay count get k --url redis://nobody.invalid --timeout 1s
}

@test "a stopped server: an error within the timeout" {
  start_server
  belay count add k
  kill -STOP "$server"
  run belay count add k --timeout 300ms
  [ "$status" = 120 ] || [ "$status" = 123 ] # 120 if it was stopped during the handshake
  has "$output" "belay: count add: cannot add: "
  kill -CONT "$server"
}

@test "a server that refuses: 123, with the server's message" {
  start_server
  ask_server SET 'belay::counter::{k}' text
  run -123 belay count add k
  has "$output" "cannot add: "
  ask_server CONFIG SET maxmemory 1
  run -123 belay count add other
  has "$output" "over its memory limit"
}

@test "--verbose reports connections on standard error" {
  start_server
  run -0 --separate-stderr belay count add k --verbose
  is "$output" 1
  has "$stderr" "belay: count add: "
}

# ---- results ----

@test "--json writes JSON, --quiet nothing" {
  start_server
  for line in "count add k" "count get k l" "count set k 1" "count delete k" "id uuid" \
    "id sequence s" "id decode 77" "version"; do
    belay $line --json >"$HOME/said" || [ $? = 1 ]
    while read -r one; do
      python3 -m json.tool <<<"$one" >/dev/null
    done <"$HOME/said"
    [ -s "$HOME/said" ]
    run --separate-stderr belay $line --quiet
    is "$output$stderr" ""
  done
}

@test "a full disk is an error" {
  start_server
  for line in "count add k" "count get k --json" "help" "count --help" "count add --help" \
    "version" "manual" "completion bash" "id uuid -c 9999" "acl --user a --namespace a all"; do
    run -123 --separate-stderr bash -c "belay $line >/dev/full"
    has "$stderr" "the output could not be written: No space left on device"
  done
  is "$(ask_server GET 'belay::counter::{k}')" 1 # the add was executed
  run -0 bash -c "belay count add k --quiet >/dev/full"
}

@test "a reader that closed the pipe: 123 without a message" {
  run -0 bash -c \
    '{ belay id uuid --count 65536 2>"$HOME/errors"; echo $? >"$HOME/status"; } | head -n 1'
  is "$(cat "$HOME/status")" 123
  is "$(cat "$HOME/errors")" ""
}

@test "closed standard files are not replaced by other files" {
  start_server
  run -123 bash -c 'belay count add k >&-'
  has "$output" "the output could not be written: Bad file descriptor"
  run -0 bash -c 'belay count add k <&- 2>&-'
  is "$output" 2
  run -123 bash -c 'belay count add k <&- >&- 2>&-'
  is "$(belay count get k)" 3
}

# ---- endings ----

@test "SIGINT, SIGTERM and SIGHUP end belay, and its status shows the signal" {
  start_server
  belay count add k
  kill -STOP "$server"
  for signal in INT TERM HUP; do
    start_command env --default-signal=INT,HUP \
      belay count get k --timeout 5m --verbose 2>"$HOME/said"
    local pid=$begun status=0
    wait_until catches "$pid" "$signal"
    kill -"$signal" "$pid"
    wait "$pid" || status=$?
    is "$status" $((128 + $(kill -l "$signal")))
    lacks "$(cat "$HOME/said")" "left open"
  done
}

@test "ctrl-C at a terminal" {
  start_server
  belay count add k
  kill -STOP "$server"
  run -130 on_terminal --when begun --type ^C \
    sh -c 'echo begun; exec belay count get k --timeout 5m'
}

@test "SIGHUP ignored by the caller stays ignored" {
  start_server
  belay count add k
  kill -STOP "$server"
  start_command bash -c 'trap "" HUP; exec belay count get k --timeout 5m' >"$HOME/said"
  local pid=$begun
  wait_until catches "$pid" TERM
  kill -HUP "$pid"
  run -1 catches "$pid" HUP
  kill -CONT "$server"
  wait "$pid"
  is "$(cat "$HOME/said")" 1
}

@test "missing arguments are named" {
  run -2 belay allow grant f
  has "$output" "belay: allow grant: ID and PERMISSION are missing"
  run -2 belay id sequence
  has "$output" "belay: id sequence: NAME is missing"
  run -2 belay allow grant
  has "$output" "KEY, ID and PERMISSION are missing"
  run -2 belay count
  has "$output" "add, get, set or delete is missing"
  run -2 belay count foo
  has "$output" "there is no such command: count is followed by add, get, set or delete"
}

@test "--json for commands that only write" {
  start_server
  is "$(belay online beat shop 7 8 --json)" '{"site":"shop","event":"beat","members":2}'
  is "$(belay online leave shop 7 --json)" '{"site":"shop","event":"leave","members":1}'
  is "$(belay online reset shop --json)" '{"site":"shop","event":"reset","members":0}'
  belay rank add b m -q
  is "$(belay rank delete b --json)" '{"board":"b","deleted":true}'
  belay allow grant f 1 1 -q
  is "$(belay allow delete f --json)" '{"key":"f","deleted":true}'
  is "$(belay cache report --forget --json)" '{"key":"report","forgotten":true}'
  run -2 belay cache report --json -- echo x
  has "$output" "--json needs --forget"
}

@test "no server: no result is written" {
  export BELAY_URL=redis://127.0.0.1:1
  for line in "count get a b" "rank top b" "rank of b m" "rank add b m" "allow list f 1" \
    "allow list f" "allow check f 1 2" "online is s 1 2" "online list s" \
    "id sequence x --count 3" "limit k --rate 1/s" "bloom info f" "ls" "show k"; do
    run -120 --separate-stderr belay $line --timeout 200ms --json
    is "$output" ""
    has "$stderr" "no server could be reached"
  done
}
