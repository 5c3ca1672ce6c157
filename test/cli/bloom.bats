#!/usr/bin/env bats
# belay bloom.
load helper

set_up() { start_server; }

create() { belay bloom create f --capacity 20000 --error-rate 1e-6 --quiet "$@"; }

# has_all FROM TO: test these items, as lines.
has_all() { seq "$1" "$2" | belay bloom has f -q; }

# ---- filters ----

@test "create, add, has, info and delete" {
  is "$(belay bloom create f --capacity 1000)" created
  is "$(belay bloom add f a b a)" $'a\nb'
  run -1 belay bloom add f a b
  is "$output" ""
  is "$(belay bloom add f a c)" c
  run -0 belay bloom has f a c
  is "$output" $'a\nc'
  run -1 belay bloom has f a x c
  is "$output" $'a\nc'
  run -1 belay bloom has f a x c y --missing
  is "$output" $'x\ny'
  run -0 belay bloom info f --json
  is "$(json 'o["name"], o["kind"], o["items"], o["capacity"], o["error_rate"], o["layers"]')" \
    "('f', 'plain', 3, 1000, 0.01, 1)"
  is "$(json 'o["ttl_ms"] <= 30 * 86400000')" True
  run -0 belay bloom info f
  has "$output" "plain, about 3 items of 1000, "
  run -0 belay bloom delete f
  is "$output" deleted
  run -1 belay bloom delete f
  is "$output" "not found"
  is "$(ask_server DBSIZE)" 0
}

@test "--json: one object per item" {
  create
  run -0 belay bloom add f a b a --json
  is "$output" '{"item":"a","new":true}
{"item":"b","new":true}
{"item":"a","new":false}'
  run -1 belay bloom has f a c --json
  is "$output" '{"item":"a","found":true}
{"item":"c","found":false}'
}

@test "a missing filter: 123, and none is created" {
  run -123 belay bloom add f a
  has "$output" "there is no filter"
  run -123 belay bloom has f a
  run -1 belay bloom info f
  is "$(ask_server DBSIZE)" 0
}

@test "create again: no error with the same options, an error with others" {
  is "$(belay bloom create f --capacity 1000)" created
  belay bloom add f a -q
  is "$(belay bloom create f --capacity 1000)" "exists already, with the same options"
  run -123 belay bloom create f --capacity 1001
  has "$output" "it has another number of bits"
  run -0 belay bloom has f a
}

@test "kinds and ttls" {
  belay bloom create s --capacity 100 --scaling --ttl forever -q
  seq 1000 | belay bloom add s -q
  run -0 belay bloom info s --json
  is "$(json 'o["kind"], o["layers"] > 2, 980 <= o["items"] <= 1000, o["ttl_ms"]')" \
    "('scaling', True, True, None)"
  belay bloom create r --capacity 100 --window 1h -q
  is "$(belay bloom add r a)" a
  run -0 belay bloom has r a
  run -0 belay bloom info r --json
  is "$(json 'o["kind"]')" rotating
  belay bloom create t --capacity 100 --ttl 1m -q
  local left
  left=$(ask_server PTTL belay::bloom::{t})
  ((left > 0 && left <= 60000))
}

@test "invalid options are refused" {
  run -2 belay bloom create f
  has "$output" "--capacity is missing"
  for wrong in "--scaling --window 1h" "--window 1h --ttl 1h" "--error-rate x" "--error-rate 1%%" \
    "--error-rate 0" "--error-rate 60%" "--error-rate nan" "--ttl 10ms" \
    "--scaling --capacity 999999999"; do
    run -2 belay bloom create f --capacity 1000 $wrong
  done
  run -2 belay bloom
  run -2 belay bloom ad f
  has "$output" "create, add, has"
  run -2 belay bloom add
  is "$(ask_server DBSIZE)" 0
}

@test "--error-rate as a number and in percent" {
  belay bloom create a --capacity 1000 --error-rate 0.1% -q
  run -0 belay bloom create a --capacity 1000 --error-rate 0.001
  is "$output" "exists already, with the same options"
}

# ---- lines ----

@test "10,000 lines" {
  create
  run -0 bash -c 'seq 10000 | belay bloom add f'
  is "${#lines[@]}" 10000
  is "$output" "$(seq 10000)"
  has_all 1 10000
  run -1 bash -c 'seq 10000 | belay bloom add f'
  is "$output" ""
  run -0 bash -c 'seq 9000 11000 | belay bloom add f'
  is "$output" "$(seq 10001 11000)"
  run -0 belay bloom info f --json
  is "$(json '10900 <= o["items"] <= 11100')" True
  # Lines are sent in batches.
  local calls
  calls=$(ask_server INFO stats | tr -d '\r' | sed -n 's/^total_commands_processed://p')
  ((calls < 1000))
}

@test "one socket for input and output: all results, even with a slow reader" {
  create
  run -0 python3 -c 'import socket, subprocess, sys, threading, time
ours, its = socket.socketpair()
its.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
belay = subprocess.Popen(sys.argv[1:], stdin=its, stdout=its)
its.close()
lines = b"".join(b"%d\n" % i for i in range(10000))
def send():
    ours.sendall(lines)
    ours.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
time.sleep(1)
taken = b""
while part := ours.recv(65536): taken += part
print(taken == lines)
sys.exit(belay.wait())' belay bloom add f
  is "$output" True
}

@test "10,000 lines from a file, and from a file on a terminal" {
  create
  seq 10000 >"$HOME/lines"
  run -0 bash -c 'belay bloom add f --json <"$HOME/lines" | grep -c "\"new\":true"'
  is "$output" 10000
  run -0 bash -c 'belay bloom has f - <"$HOME/lines"'
  is "$output" "$(cat "$HOME/lines")"
  run -0 on_terminal --when begun --type $'5000\n\004' bash -c 'echo begun; exec belay bloom has f'
  is "$(tr -d '\r' <<<"$output")" $'begun\n5000\n5000'
}

@test "10,000 arguments" {
  create
  run -0 belay bloom add f $(seq 10000)
  is "$output" "$(seq 10000)"
  has_all 1 10000
}

@test "a last line without an end, empty lines, spaces" {
  create
  run -0 bash -c 'printf "a\n\n b \nc" | belay bloom add f --json'
  is "$(json 'o["item"]')" $'a\n\n b \nc'
  run -0 belay bloom has f a "" " b " c
  run -1 belay bloom has f b
  run -0 bash -c 'printf "" | belay bloom add f'
  is "$output" ""
  run -0 bash -c 'belay bloom has f </dev/null'
}

@test "any bytes pass unchanged; a terminal gets control characters escaped" {
  create
  printf '\xff\x01\e[31m\nb\r\n' >"$HOME/lines"
  belay bloom add f <"$HOME/lines" | cmp - "$HOME/lines"
  run -0 on_terminal bash -c 'belay bloom has f <"$HOME/lines"'
  lacks "$output" $'\e'
  has "$output" '\xff\x01\x1b[31m'
}

@test "a slow pipe: each line is processed when it is complete" {
  create
  mkfifo "$HOME/pipe"
  start_command bash -c 'exec belay bloom add f <"$HOME/pipe" >"$HOME/said"'
  local pid=$begun
  exec 5>"$HOME/pipe"
  printf 'one\ntw' >&5
  wait_until grep -qx one "$HOME/said"
  is "$(cat "$HOME/said")" one
  printf 'o\nthree' >&5
  wait_until grep -qx two "$HOME/said"
  exec 5>&-
  wait "$pid"
  is "$(cat "$HOME/said")" $'one\ntwo\nthree'
}

@test "a writer that is faster than the server has to wait" {
  create
  kill -STOP "$server"
  start_command bash -c '{ yes | head -c 50000000; echo all >"$HOME/written"; } |
    belay bloom add f -q --timeout 5m; true'
  sleep 1
  [ ! -e "$HOME/written" ]
  local belay
  belay=$(pgrep -P "$begun" -x belay)
  local kb
  kb=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$belay/status")
  ((kb < 60000)) || { echo "$kb kB" && false; }
  kill -INT "$belay"
  kill -CONT "$server"
}

@test "a line has at most one MiB" {
  create
  head -c 1048576 /dev/zero | tr '\0' x >"$HOME/long"
  { echo before && cat "$HOME/long" && echo && echo behind; } >"$HOME/lines"
  run -0 bash -c 'belay bloom add f <"$HOME/lines" | wc -c'
  is "$output" $((1048576 + 1 + 7 + 7))
  { echo first && cat "$HOME/long" && echo x && echo behind; } >"$HOME/lines"
  run -123 --separate-stderr bash -c 'belay bloom add f <"$HOME/lines"'
  is "$output" first
  is "$stderr" "belay: bloom add: line 2 is longer than 1048576 bytes"
  run -123 bash -c '{ cat "$HOME/long" && printf x; } | belay bloom add f'
  has "$output" "line 1 is longer"
  run -123 bash -c 'yes | tr -d "\n" | belay bloom add f'
  has "$output" "line 1 is longer"
  run -1 belay bloom has f behindx
}

@test "standard input is closed, or a folder" {
  create
  run -123 bash -c 'belay bloom add f <&-'
  has "$output" "standard input cannot be read"
  run -123 bash -c 'belay bloom add f </'
  has "$output" "standard input cannot be read: "
}

@test "ctrl-C while it waits for lines: the pipe has its old flags" {
  create
  run -130 on_terminal --when begun --type ^C bash -c 'echo begun; exec belay bloom add f'
  mkfifo "$HOME/pipe"
  exec 5<>"$HOME/pipe"
  start_command bash -c 'exec env --default-signal=INT belay bloom add f <&5 >"$HOME/said"'
  local pid=$begun status=0
  echo one >&5
  wait_until grep -qx one "$HOME/said"
  kill -INT "$pid"
  wait "$pid" || status=$?
  is "$status" 130
  is "$(python3 -c 'import fcntl, os; print(fcntl.fcntl(5, fcntl.F_GETFL) & os.O_NONBLOCK)')" 0
  exec 5>&-
}

# ---- faults ----

@test "no server: 120" {
  run -120 belay bloom add f a --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: bloom add: cannot add: no server could be reached"
}

@test "a server stops in the middle: the error has the number of processed items" {
  create
  mkfifo "$HOME/pipe"
  start_command bash -c \
    'exec belay bloom add f --timeout 1s <"$HOME/pipe" >"$HOME/said" 2>"$HOME/wrong"'
  local pid=$begun status=0
  exec 5>"$HOME/pipe"
  seq 10 >&5
  wait_until grep -qx 10 "$HOME/said"
  kill -STOP "$server"
  echo 11 >&5
  wait "$pid" || status=$?
  exec 5>&-
  is "$status" 123
  has "$(cat "$HOME/wrong")" "cannot add more than the first 10: "
}

@test "a full disk, and a reader that closed the pipe" {
  create
  run -123 bash -c 'seq 100000 | belay bloom add f >/dev/full'
  has "$output" "the output could not be written: No space left on device"
  run -0 --separate-stderr \
    bash -c '{ seq 100000 200000 | belay bloom add f; echo $? >"$HOME/status"; } | head -n 1'
  is "$output" 100000
  is "$(cat "$HOME/status")" 123
  run -1 belay bloom has f 200000 # it has stopped early
  run -0 bash -c 'seq 10 | belay bloom has f -q >/dev/full; [ $? -le 1 ]'
}
