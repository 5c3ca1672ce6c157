#!/usr/bin/env bats
# belay show.
load helper

set_up() { start_server; }

@test "not held, or unknown: the status is 1" {
  run -1 belay show nothing
  is "$output" ""
  hold lock orders web-1
  kill "$begun"
  gone() { ! belay show orders; }
  wait_until gone
  run -1 belay show orders
  [[ $output =~ ^lock\ orders$'\n'\ \ not\ held$'\n'\ \ the\ last\ fencing\ number\ is\ [0-9]+$ ]]
  run -1 belay show orders --json
  is "$(json 'o["holders"], o["owner"], o["remaining_ms"]')" "([], None, None)"
  is "$(json 'int(o["fence"]) > 0, isinstance(o["fence"], str)')" "(True, True)"
}

@test "all holders and waiters of all kinds of a name" {
  hold semaphore both web-1
  hold fair both web-2
  wait_for fair both web-3
  wait_for fair both web-4
  queued() {
    run belay show both --kind lock --json &&
      [ "$(json 'o["waiting"], o["listening"]')" = "(2, 2)" ]
  }
  wait_until queued
  run -0 belay show both
  is "$(sed 's/, [0-9.]*s, mark [0-9a-f]\{16\}/, T, M/' <<<"$output")" "lock both
  held by web-2, T, M
  2 wait in the queue
  2 connections listen for its release
semaphore both
  held by web-1, T, M, 2 permits"
  run -0 belay show both --kind semaphore --json
  is "$(json 'o["used"], o["holders"][0]["label"], o["holders"][0]["permits"]')" "(2, 'web-1', 2)"
  is "$(json 'len(o["holders"][0]["mark"])')" 16
}

@test "readers, a writer, a leader" {
  hold reader doc web-1
  hold reader doc web-2
  hold election chief web-3
  run -0 belay show doc --json
  is "$(json 'sorted(h["label"] for h in o["holders"]), [h["writes"] for h in o["holders"]]')" \
    "(['web-1', 'web-2'], [False, False])"
  has "$(belay show doc)" "  read by web-1, "
  has "$(belay show chief)" "  its leader is web-3"
  hold writer log web-4
  has "$(belay show log)" "  written by web-4, "
}

@test "a Redlock: a majority decides, and unreachable servers are reported" {
  local urls=() sockets=() pids=()
  for i in 1 2 3; do
    start_server
    urls+=(--url "$BELAY_URL")
    sockets+=("$server_socket")
    pids+=("$server")
  done
  hold lock orders web-1 "${urls[1]}" "${urls[3]}" "${urls[5]}"
  at_all() { belay show orders "${urls[@]}" | grep -q "the same holder at 3 of 3: a majority"; }
  wait_until at_all # a majority is enough for the holder
  run -0 belay show orders "${urls[@]}"
  has "$output" "lock orders at ${sockets[2]}"
  has "$output" "the same holder at 3 of 3: a majority"
  redis-cli -s "${sockets[0]}" DEL 'belay::lock::{orders}'
  run -0 belay show orders "${urls[@]}" --quiet
  kill -KILL "${pids[1]}"
  run -1 belay show orders "${urls[@]}" --timeout 500ms
  has "$output" "belay: show: cannot ask at ${sockets[1]}: "
  has "$output" "the same holder at 1 of 3: no majority"
  kill -KILL "${pids[0]}"
  run -120 belay show orders "${urls[@]}" --timeout 500ms
}

@test "labels are escaped; no token is shown" {
  local token=0123456789abcdef0123456789abcdef01234567
  ask_server SET 'belay::lock::{a}' "$token:web-1" PX 60000
  ask_server SET 'belay::lock::{b}' "another-secret" PX 60000
  ask_server RPUSH 'belay::lock::{c}' x
  has "$(belay show a)" "held by web-1, "
  run -0 belay show b -v
  has "$output" "held by ?, "
  for form in -v --json; do
    run -0 belay show a "$form"
    lacks "$output" "$token"
    run -0 belay show b "$form"
    lacks "$output" another-secret
  done
  run -1 belay show c
  is "$output" "belay: show: lock c: the key holds something else"
  run -1 belay show $'c\e[31m'
  lacks "$output" $'\e'
  ask_server SET 'belay::lock::{c%1B[31m}' "$token:web-1" PX 60000
  run -0 belay show $'c\e[31m'
  is "${lines[0]}" 'lock c\x1b[31m'
}

@test "no server, no name, a full disk" {
  run -120 belay show orders --url unix:///nonexistent --timeout 200ms
  has "$output" "belay: show: cannot ask: no server could be reached"
  run -2 belay show
  run -2 belay show a b
  run -2 belay show a --kind key
  hold lock here me
  run -123 bash -c 'belay show here >/dev/full'
}
