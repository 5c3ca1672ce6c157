#!/usr/bin/env bats
# belay ls.
load helper

set_up() { start_server; }

token=0123456789abcdef0123456789abcdef01234567

@test "nothing is held: the status is 1" {
  run -1 belay ls
  is "$output" ""
  ask_server SET 'belay::counter::{k}' 1
  run -1 belay ls --json
}

@test "kind, name, owner, remaining, fence, waiters" {
  hold lock orders web-1
  hold fair queue web-2
  wait_for fair queue web-3
  hold semaphore gpu web-4
  hold reader doc web-5
  hold reader doc web-6
  hold writer log web-7
  hold election chief web-8
  queued() { run belay ls queue --json && [ "$(json 'o["waiting"]')" = 1 ]; }
  wait_until queued
  run -0 belay ls
  is "${#lines[@]}" 7
  [[ ${lines[0]} =~ ^KIND\ +NAME\ +HELD\ +OWNER\ +REMAINING\ +FENCE\ +WAITING$ ]]
  is "$(sed 's/ [0-9.]*s / /; s/ [0-9]\{10,\} / N /; s/  */ /g' <<<"$output" | tail -n +2)" \
    "election chief 1 web-8 N 0
rwlock doc 2 readers web-6 +1 - 0
semaphore gpu 2 permits web-4 - 0
rwlock log 1 writer web-7 - 0
lock orders 1 web-1 N 0
lock queue 1 web-2 - 1"
  run -0 belay ls --json
  local fields='o["kind"], o["name"], o["owner"], o["holders_count"], o["waiting"]'
  is "$(json "$fields"', 0 < o["remaining_ms"] <= 60000')" \
    "('election', 'chief', 'web-8', 1, 0, True)
('rwlock', 'doc', 'web-6', 2, 0, True)
('semaphore', 'gpu', 'web-4', 1, 0, True)
('rwlock', 'log', 'web-7', 1, 0, True)
('lock', 'orders', 'web-1', 1, 0, True)
('lock', 'queue', 'web-2', 1, 1, True)"
  is "$(json 'o.get("used"), o.get("limit"), int(o["fence"] or 0) > 10 ** 15' | sort -u)" \
    "(2, None, False)
(None, None, False)
(None, None, True)"
}

@test "filters by pattern and by kind" {
  for name in alpha beta 'al::pha' 'a{b}c' job-1 job-2; do hold lock "$name" me; done
  hold election alpha me
  run -0 belay ls --json 'al*'
  is "$(json 'o["kind"] + " " + o["name"]' | sort)" $'election alpha\nlock al::pha\nlock alpha'
  run -0 belay ls --json 'al::*'
  is "$(json 'o["name"]')" 'al::pha'
  run -0 belay ls --json 'job-[2-9]'
  is "$(json 'o["name"]')" 'job-2'
  run -0 belay ls --json '?{b}*'
  is "$(json 'o["name"]')" 'a{b}c'
  run -0 belay ls --json alpha --kind election
  is "$(json 'o["kind"]')" election
  run -0 belay ls --json alpha --kind election --kind lock
  is "${#lines[@]}" 2
  run -1 belay ls alpha --kind rwlock
  run -2 belay ls --kind nonsense
  has "$output" "--kind is not one of these: lock rwlock semaphore election"
}

@test "only the namespace" {
  ask_server SET 'other::lock::{mine}' "$token:me" PX 60000
  run -1 belay ls
  run -0 belay ls --namespace other --json
  is "$(json 'o["name"]')" mine
}

@test "labels of other programs are escaped; no token is shown" {
  local name=$'evil\e[31m\n'
  ask_server SET 'belay::lock::{evil%1B[31m%0A}' "$token:web-1" PX 60000
  ask_server SET 'belay::lock::{foreign}' "secret-of-another-library" PX 60000
  ask_server SET 'belay::lock::{ever}' "$token:web-2"
  hold lock real web-3
  local real
  real=$(ask_server GET 'belay::lock::{real}')
  has "$real" :web-3
  run -0 belay ls
  has "$output" 'evil\x1b[31m\x0a'
  [[ $output =~ foreign\ +1\ +\?\  ]]
  [[ $output =~ ever\ +1\ +web-2\ +no\ end ]]
  run -0 belay ls --json
  is "$(json 'ascii(o["name"])' | grep evil)" "'evil\\x1b[31m\\n'"
  is "$(json 'o["owner"], o["holders"][0]["label"]' | grep -c None)" 1
  for text in "$output" "$(belay ls)" "$(belay ls -v 2>&1)"; do
    lacks "$text" "$token"
    lacks "$text" secret-of
    lacks "$text" "${real%%:*}"
  done
}

@test "thousands of entries" {
  for i in {1..2500}; do
    echo "SET belay::lock::{n$i} $token:web-$i PX 600000"
  done | ask_server >/dev/null
  is "$(belay ls --json | sort -u | wc -l)" 2500
  is "$(belay ls | grep -c '^lock ')" 2500
}

@test "several servers, and one of them away" {
  hold lock here me
  local one=$BELAY_URL
  run -120 belay ls --url "$one" --url unix:///nonexistent --timeout 300ms
  has "$output" "belay: ls: cannot list at /nonexistent: no server could be reached"
  [[ $output =~ lock\ +here.*\ ${server_socket} ]]
  run -0 belay ls --url "$one" --url "$one" --json
  is "$(json 'o["node"]')" "$server_socket"$'\n'"$server_socket"
}

@test "no server, a password, and a full disk" {
  run -120 belay ls --url unix:///nonexistent --timeout 200ms
  local url=redis://me:hunter2@127.0.0.1:1
  run -120 belay ls --url "$url" --url "$url" --timeout 200ms
  has "$output" "at 127.0.0.1:1: "
  lacks "$output" hunter2
  hold lock here me
  run -123 bash -c 'belay ls >/dev/full'
  has "$output" "belay: ls: the output could not be written: "
  run -123 bash -c 'belay ls --json >/dev/full'
  run -0 belay ls --quiet
  is "$output" ""
}
