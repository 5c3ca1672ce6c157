#!/usr/bin/env bats
# belay break.
load helper

set_up() { start_server; }

mark_of() { belay show "$1" --json | python3 -c 'import json, sys
for line in sys.stdin:
    for h in json.loads(line)["holders"]:
        if h["label"] == sys.argv[1]: print(h["mark"])' "$2"; }

@test "not held: the status is 1" {
  run -1 belay break orders --yes
  is "$output" "belay: break: not held"
  run -1 belay break orders
  run -1 belay break orders --yes --quiet
}

@test "without --yes it only prints its plan" {
  hold lock orders web-1
  run -2 belay break orders
  [[ ${lines[0]} =~ ^would\ take\ lock\ orders\ from\ web-1,\ [0-9.]+s,\ mark\ [0-9a-f]{16}$ ]]
  local above=${lines[0]##*mark }
  is "${lines[1]}" "belay: break: nothing was done: give --yes; \
or, to remove exactly the holder above: --mark $above --yes"
  run -0 belay show orders
  run -2 --separate-stderr belay break orders --json
  is "$(json 'o["label"], o["mark"], o["broken"]')" "('web-1', '$(mark_of orders web-1)', False)"
}

@test "the waiter gets the lock, the holder is notified, the fencing number grows" {
  hold lock orders web-1
  local before holder=$begun
  run -0 belay show orders --json
  before=$(json 'o["fence"]')
  wait_for lock orders web-2
  local waiter=$begun
  listens() { run belay show orders --json && [ "$(json 'o["listening"]')" = 1 ]; }
  wait_until listens
  run -0 belay break orders --yes
  is "$output" "lock orders: taken from 1"
  wait_until grep -q held "$HOME/holder-$waiter"
  run -0 belay show orders --json
  is "$(json 'o["owner"], int(o["fence"]) > '"$before")" "('web-2', True)"
  kill -0 "$holder"
}

@test "a holder that came after the read keeps the lock" {
  hold lock orders web-1
  local old
  old=$(mark_of orders web-1)
  kill "$begun"
  wait "$begun"
  hold lock orders web-1 # the very same name
  run -1 belay break orders --mark "$old" --yes
  is "$output" "belay: break: no holder with that mark was found; the present holder keeps it"
  run -0 belay show orders --quiet
  run -0 belay break orders --mark "$(mark_of orders web-1)" --yes
  run -1 belay show orders --quiet
}

@test "the maximum number of servers, some with a value of another kind" {
  local urls=() i
  for i in {0..15}; do
    urls+=(--url "$BELAY_URL?db=$i")
    hold lock orders web-1 "$BELAY_URL?db=$i"
  done
  hold election orders web-2 "$BELAY_URL?db=15" # the last thing that is found
  kill "$begun"
  wait "$begun"
  run -2 belay break orders "${urls[@]}"
  is "$(grep -c "would take" <<<"$output")" 16
  run -0 belay break orders "${urls[@]}" --yes
  is "$(grep -c "taken from 1" <<<"$output")" 16
  run -1 belay break orders "${urls[@]}" --yes
  is "$output" "belay: break: not held"
}

@test "one of several holders" {
  for i in 1 2 3; do hold reader doc "web-$i"; done
  run -0 belay break doc --mark "$(mark_of doc web-2)" --yes --json
  is "$(json 'o["removed"], o["missed"], o["others"]')" "(1, 0, 2)"
  run -0 belay show doc --json
  is "$(json 'sorted(h["label"] for h in o["holders"])')" "['web-1', 'web-3']"
  run -0 belay break doc --mark "$(mark_of doc web-1)" --yes
  is "$output" "rwlock doc: taken from 1; 1 more hold it, and keep it"
  run -0 belay break doc --yes
  run -1 belay show doc --quiet
}

@test "each kind, and a name of several kinds" {
  hold semaphore x web-1
  hold election x web-2
  run -2 belay break x --yes
  has "$output" "select one with --kind"
  run -0 belay show x --quiet
  run -0 belay break x --kind semaphore --yes
  is "$output" "semaphore x: taken from 1"
  run -0 belay break x --yes
  is "$output" "election x: taken from 1"
  run -1 belay show x --quiet
}

@test "a Redlock, while a minority is away" {
  local urls=() pids=()
  for i in 1 2 3; do
    start_server
    urls+=(--url "$BELAY_URL")
    pids+=("$server")
  done
  hold lock orders web-1 "${urls[1]}" "${urls[3]}" "${urls[5]}"
  run -2 belay break orders "${urls[@]}"
  kill -KILL "${pids[0]}"
  run -0 --separate-stderr belay break orders "${urls[@]}" --yes --timeout 500ms
  is "${#lines[@]}" 2
  run -1 belay show orders "${urls[@]}" --quiet --timeout 500ms
  kill -KILL "${pids[1]}"
  run -120 belay break orders "${urls[@]}" --yes --timeout 500ms
}

@test "a holder behind a thousand others is not reported as removed" {
  local mark i others=() token=0123456789abcdef0123456789abcdef01234567
  for i in {1..1000}; do others+=(8e15 "$i"); done
  ask_server ZADD 'belay::semaphore::{gpu}' 7e15 "$token:dead"
  mark=$(mark_of gpu dead)
  ask_server ZADD 'belay::semaphore::{gpu}' "${others[@]}"
  run -123 belay break gpu --mark "$mark" --yes
  is "$output" \
    "belay: break: no holder with that mark is among the first 1000 holders, and there are more"
  is "$(ask_server ZCARD 'belay::semaphore::{gpu}')" 1001
  ask_server ZREM 'belay::semaphore::{gpu}' 1
  run -0 belay break gpu --mark "$mark" --yes --json
  is "$(json 'o["removed"], o["missed"], o["unseen"], o["others"]')" "(1, 0, 0, 999)"
}

@test "no token in the output; no server, no mark, a full disk" {
  local token=0123456789abcdef0123456789abcdef01234567
  ask_server SET 'belay::lock::{a}' "$token:web-1"
  run -2 belay break a -v
  has "$output" "no end"
  lacks "$output" "$token"
  for mark in 1 "${token:0:16}0" "0x${token:0:14}" "$token"; do
    run -2 belay break a --mark "$mark" --yes
    has "$output" "--mark must be the 16 digits"
  done
  run -123 bash -c 'belay break a >/dev/full'
  run -0 belay break a --yes --verbose
  lacks "$output" "$token"
  run -120 belay break a --yes --url unix:///nonexistent --timeout 200ms
  run -2 belay break
}
