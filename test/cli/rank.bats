#!/usr/bin/env bats
# belay rank.
load helper

set_up() { start_server; }

@test "add, set, of, top, around, count and delete" {
  is "$(belay rank add points ada 5)" $'1\tada\t5'
  is "$(belay rank add points bob)" $'2\tbob\t1'
  is "$(belay rank add points bob 9)" $'1\tbob\t10'
  is "$(belay rank set points cleo 7)" $'2\tcleo\t7'
  is "$(belay rank add points ada -6)" $'3\tada\t-1'
  is "$(belay rank top points)" $'1\tbob\t10\n2\tcleo\t7\n3\tada\t-1'
  is "$(belay rank top points 1)" $'1\tbob\t10'
  is "$(belay rank top points 1 --skip 1)" $'2\tcleo\t7'
  is "$(belay rank top points 2 --worst)" $'3\tada\t-1\n2\tcleo\t7'
  is "$(belay rank of points ada bob)" $'3\tada\t-1\n1\tbob\t10'
  run -1 belay rank of points ada nobody
  is "$output" $'3\tada\t-1\n-\tnobody\t-'
  is "$(belay rank count points)" 3
  is "$(belay rank delete points ada nobody)" 1
  run -1 belay rank delete points ada
  is "$output" 0
  run -0 belay rank delete points
  run -1 belay rank count points
  run -1 belay rank top points
  is "$(ask_server DBSIZE)" 0
}

@test "around: at most N on each side" {
  for i in {1..9}; do belay rank set b "m$i" "$i" -q; done
  is "$(belay rank around b m5 1)" $'4\tm6\t6\n5\tm5\t5\n6\tm4\t4'
  is "$(belay rank around b m9 2 --json | tail -n 1)" '{"rank":3,"member":"m7","score":"7"}'
  is "$(belay rank around b m5 0)" $'5\tm5\t5'
  is "$(belay rank around b m5 | wc -l)" 9
  run -1 belay rank around b nobody
  is "$output" ""
}

@test "--json" {
  is "$(belay rank add b $'a"\xff' 3 --json)" '{"rank":1,"member":"a\"\u00ff","score":"3"}'
  run -1 belay rank of b nobody --json
  is "$output" '{"rank":null,"member":"nobody","score":null}'
  is "$(belay rank count b --json)" '{"board":"b","members":1}'
  is "$(belay rank delete b nobody --json || true)" '{"board":"b","removed":0}'
}

@test "--low-first, --best and --ties" {
  belay rank set laps ada 73 --best --low-first -q
  run -1 belay rank set laps ada 74 --best --low-first
  is "$output" $'1\tada\t73'
  run -0 belay rank set laps ada 70 --best --low-first
  is "$output" $'1\tada\t70'
  belay rank set laps bob 71 --low-first -q
  is "$(belay rank top laps --low-first)" $'1\tada\t70\n2\tbob\t71'
  belay rank set t zoe 5 --ties earlier -q
  belay rank set t ada 5 --ties earlier -q
  is "$(belay rank top t --ties earlier)" $'1\tzoe\t5\n2\tada\t5'
}

@test "the server stores order and ties of a BOARD; other values are errors" {
  belay rank set t zoe 5 --ties earlier --low-first -q
  belay rank set t ada 5 -q
  belay rank add t bob 4 -q
  is "$(belay rank top t)" $'1\tbob\t4\n2\tzoe\t5\n3\tada\t5'
  is "$(belay rank of t ada)" $'3\tada\t5'
  is "$(belay rank count t)" 3
  run -123 belay rank top t --ties later
  has "$output" "t was made with --ties earlier, and --ties later was given"
  belay rank set high ada 5 -q
  run -123 belay rank top high --low-first
  has "$output" "high was made with the order high, and the order low was given"
  run -123 belay rank delete t --ties member
  is "$(belay rank delete t zoe)" 1
  belay rank delete t
  belay rank delete high
  is "$(ask_server DBSIZE)" 0
  run -1 belay rank delete t
  has "$output" "there is no configuration of t"
}

@test "--max-members and --ttl" {
  for i in 3 1 2; do belay rank set b "m$i" "$i" --max-members 2 --ttl 1h -q; done
  is "$(belay rank top b)" $'1\tm3\t3\n2\tm2\t2'
  run -1 belay rank set b m0 0 --max-members 2
  is "$output" $'-\tm0\t-'
  local left
  left=$(ask_server PTTL 'belay::ranking::{b}')
  ((left > 0 && left <= 3600000)) # the ttl of the board is kept
  belay rank set b m3 3 -q
  is "$(belay rank count b)" 2
  belay rank set b m4 4 --ttl forever --max-members 3 -q
  is "$(ask_server PTTL 'belay::ranking::{b}')" -1
  is "$(ask_server PTTL 'belay::ranking::{b}::config')" -1
  is "$(belay rank count b)" 3
  belay rank delete b m4 -q
  belay rank add b m3 --name other -q
  is "$(belay rank count b)" 2
}

@test "invalid arguments are refused" {
  for wrong in "add b" "set b m" "set b m x" "set b m 9007199254740992" "top b 0" "top b 1025" \
    "around b m 512" "top b --ties last" "add b m 1 --ttl 1ms" "of b" "top"; do
    run -2 belay rank $wrong
  done
  belay rank set b m 9007199254740991 -q
  run -123 belay rank add b m
  is "$(belay rank of b m)" $'1\tm\t9007199254740991'
}

@test "no server: 120; a full disk: 123" {
  run -120 belay rank top b --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: rank top: cannot read: no server could be reached"
  for i in {1..5}; do belay rank add b "m$i" -q; done
  run -123 bash -c 'belay rank top b >/dev/full'
  run -123 bash -c 'belay rank add b m1 >/dev/full'
  run -0 --separate-stderr bash -c 'belay rank top b | head -n 1'
  is "$output" $'1\tm1\t2'
}
