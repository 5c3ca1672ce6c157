#!/usr/bin/env bats
# belay count.
load helper

set_up() { start_server; }

@test "add, get, set and delete print their result" {
  is "$(belay count add k)" 1
  is "$(belay count add k 41)" 42
  is "$(belay count add k -2)" 40
  is "$(belay count get k)" 40
  is "$(belay count set k 7)" 40
  is "$(belay count get k)" 7
  run -0 belay count delete k
  is "$output" deleted
  run -1 belay count delete k
  is "$output" "not found"
}

@test "a missing counter is 0, and the status is 1" {
  belay count add there 3
  run -1 belay count get nowhere
  is "$output" 0
  run -1 belay count get there nowhere
  is "$output" $'there\t3\nnowhere\t0'
  run -0 belay count get there there
}

@test "the whole range of 64 bits, and an error beyond it" {
  is "$(belay count add k 9223372036854775807)" 9223372036854775807
  run -123 belay count add k
  has "$output" "belay: count add: cannot add: "
  is "$(belay count get k)" 9223372036854775807
  run -2 belay count add k 9223372036854775808
  has "$output" "N is not a whole number"
  is "$(belay count set k -9223372036854775808)" 9223372036854775807
}

@test "--json keeps every digit" {
  belay count add k 9223372036854775807 -q
  is "$(belay count get k --json)" '{"key":"k","value":"9223372036854775807","found":true}'
  is "$(belay count set k 1 --json | tr -d ' ')" \
    '{"key":"k","before":"9223372036854775807","found":true}'
}

@test "--max 10: ten adds, and no eleventh" {
  for i in {1..10}; do run -0 belay count add seats --max 10; done
  run -1 belay count add seats --max 10
  is "$output" 10
  run -1 belay count add seats --max 10 --json
  is "$(json 'o["applied"], o["value"]')" "(False, '10')"
  run -0 belay count add seats -1 --min 0
}

@test "an --id counts once" {
  is "$(belay count add k 5 --id order-7)" 5
  is "$(belay count add k 5 --id order-7)" 5
  is "$(belay count add k 5 --id order-8)" 10
  run -123 belay count add k 6 --id order-7
}

@test "a ttl, shards and names" {
  belay count add short --ttl 1h
  local left
  left=$(ask_server PTTL belay::counter::{short})
  ((left > 0 && left <= 3600000))
  for i in {1..6}; do belay count add wide --shards 3; done
  is "$(belay count get wide --shards 3)" 6
  is "$(belay count add k --name mine)" 1
  is "$(belay count add k --name yours)" 1
}

@test "options that exclude each other" {
  run -2 belay count add k --id x --max 3
  run -2 belay count add k --shards 2 --max 3
  is "$(ask_server DBSIZE)" 0
}

@test "any bytes as KEY: JSON, and plain output without control characters" {
  belay count add $'a\nb\e[31m"\\\xff'
  run -0 belay count get --json $'a\nb\e[31m"\\\xff'
  is "$(json 'ascii(o["key"])')" "'a\\nb\\x1b[31m\"\\\\\\xff'"
  belay count add $'\u00e4\u20ac'
  run -0 belay count get --json $'\u00e4\u20ac'
  is "$(json 'ascii(o["key"])')" "'\\xe4\\u20ac'"
  run -0 belay count get $'a\nb\e[31m"\\\xff' $'a\nb\e[31m"\\\xff'
  is "${lines[0]}" $'a\\x0ab\\x1b[31m"\\\\xff\t1'
}

@test "20 processes at a time: no add is lost" {
  for i in {1..20}; do start_command belay count add k --quiet; done
  for pid in "${started[@]:1}"; do wait "$pid"; done
  is "$(belay count get k)" 20
}
