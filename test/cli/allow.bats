#!/usr/bin/env bats
# belay allow.
load helper

set_up() { start_server; }

NAMES="--names read,write,invite"

@test "grant, check, revoke, set, list and delete" {
  is "$(belay allow grant forum 17 write read $NAMES)" changed
  is "$(belay allow grant forum 17 write $NAMES)" "unchanged"
  is "$(belay allow check forum 17 read write $NAMES)" allowed
  run -1 belay allow check forum 17 read invite $NAMES
  is "$output" "not allowed"
  run -1 belay allow check forum 18 read $NAMES
  belay allow set forum 3 invite $NAMES -q
  is "$(belay allow list forum $NAMES)" $'3\tinvite\n17\tread write'
  is "$(belay allow list forum 17 4 $NAMES)" $'17\tread write\n4\t'
  is "$(belay allow revoke forum 17 read invite $NAMES)" changed
  is "$(belay allow list forum 17 $NAMES)" $'17\twrite'
  belay allow set forum 17 $NAMES -q
  is "$(belay allow list forum $NAMES)" $'3\tinvite'
  belay allow delete forum $NAMES
  run -1 belay allow list forum $NAMES
  is "$output" ""
  is "$(ask_server DBSIZE)" 0
}

@test "--json" {
  is "$(belay allow grant f 1 write $NAMES --json)" \
    '{"id":"1","may":["write"],"before":[],"changed":true}'
  is "$(belay allow grant f 1 read $NAMES --json)" \
    '{"id":"1","may":["read","write"],"before":["write"],"changed":true}'
  is "$(belay allow list f $NAMES --json)" '{"id":"1","may":["read","write"]}'
  is "$(belay allow check f 1 invite $NAMES --json || true)" \
    '{"id":"1","allowed":false,"may":["read","write"]}'
}

@test "permissions by number, and names with a larger width" {
  belay allow grant f 1 0 7 -q
  is "$(belay allow list f)" $'1\t0 7'
  run -2 belay allow grant f 1 8
  belay allow grant g 1 62 --width 63 -q
  is "$(belay allow list g --width 63)" $'1\t62'
  belay allow grant f 2 read 7 --names read --width 8 -q
  is "$(belay allow list f)" $'1\tread 7\n2\tread 7'
  is "$(belay allow list f 2 --names read --width 8)" $'2\tread 7'
}

@test "the server stores width and names of a KEY; other values are errors" {
  belay allow grant forum 17 write read $NAMES -q
  is "$(belay allow check forum 17 write)" allowed
  is "$(belay allow list forum)" $'17\tread write'
  is "$(belay allow revoke forum 17 write)" changed
  is "$(belay allow list forum $NAMES)" $'17\tread'
  is "$(belay allow grant forum 18 invite)" changed
  is "$(belay allow list forum)" $'17\tread\n18\tinvite'
  for wrong in "grant forum 17 1 --width 8" "check forum 17 1 --width 8" \
    "revoke forum 17 1 --width 8" "delete forum --width 8"; do
    run -123 belay allow $wrong
    has "$output" "forum was made with --width 3, and --width 8 was given"
  done
  run -123 belay allow grant forum 17 write --names write,read,invite
  has "$output" \
    "forum was made with --names read,write,invite, and --names write,read,invite was given"
  is "$(belay allow list forum)" $'17\tread\n18\tinvite'
  belay allow delete forum
  is "$(ask_server DBSIZE)" 0
  run -1 belay allow check forum 18 invite $NAMES
}

@test "revoke and delete without a record: 1" {
  for command in "revoke forum 17 1" "delete forum"; do
    run -1 belay allow $command
    has "$output" "there is no configuration of forum, so nothing was found"
    has "$output" "--width, --names"
  done
  is "$(belay allow revoke forum 17 1 --width 3)" "unchanged"
  belay allow delete forum --width 3
  is "$(ask_server DBSIZE)" 0
}

@test "the server stores the largest id and the ttl" {
  belay allow grant f 5 1 --max-id 9 --ttl 1h -q
  run -2 belay allow grant f 10 1
  belay allow grant f 10 1 --max-id 20 -q
  is "$(belay allow list f)" $'5\t1\n10\t1'
  is "$(belay allow list f --max-id 9)" $'5\t1'
  is "$(belay allow list f)" $'5\t1\n10\t1'
  ask_server PEXPIRE "belay::permission::{f}::u8" 1000 >/dev/null
  belay allow grant f 6 1 -q
  (($(ask_server PTTL "belay::permission::{f}::u8") > 1000))
  (($(ask_server PTTL "belay::permission::{f}::config") >
    $(ask_server PTTL "belay::permission::{f}::u8")))
}

@test "list: all ids, in order" {
  for i in 0 16383 16384 40000 1048575; do belay allow grant f "$i" 1 -q; done
  is "$(belay allow list f | cut -f 1)" $'0\n16383\n16384\n40000\n1048575'
  is "$(belay allow list f --max-id 20000 | cut -f 1)" $'0\n16383\n16384'
}

@test "without --ttl a KEY does not expire" {
  belay allow grant f 1 1 -q
  is "$(ask_server KEYS '*' | xargs -I{} redis-cli -s "$server_socket" PTTL {})" $'-1\n-1'
  belay allow grant g 1 1 --ttl 1h -q
  local left
  left=$(ask_server KEYS '*::{g}::u*' | xargs -I{} redis-cli -s "$server_socket" PTTL {})
  ((left > 0 && left <= 3600000))
}

@test "invalid arguments are refused" {
  for wrong in "grant f 1" "grant f x read" "grant f -1 0" "grant f 1 reed --names read" \
    "check f 1048576 0" "grant f 1 0 --names a,,b" "grant f 1 0 --names a,b,a" \
    "grant f 1 0 --names 1a" "grant f 1 0 --names a,b --width 1" "grant f 1 0 --width 64" \
    "list f --names a,b,a" "list f x" "delete f --names ," "list f --max-id 4294967295"; do
    run -2 belay allow $wrong
  done
  is "$(ask_server DBSIZE)" 0
}

@test "no server: 120; a full disk: 123" {
  run -120 belay allow check f 1 1 --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: allow check: cannot ask: no server could be reached"
  for i in {1..5}; do belay allow grant f "$i" 1 -q; done
  run -123 bash -c 'belay allow list f >/dev/full'
  run -123 bash -c 'belay allow grant f 1 1 >/dev/full'
  run -0 --separate-stderr bash -c 'belay allow list f | head -n 1'
  is "$output" $'1\t1'
}
