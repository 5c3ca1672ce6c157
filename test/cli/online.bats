#!/usr/bin/env bats
# belay online.
load helper

set_up() { start_server; }

@test "beat, count, is, list, leave and reset" {
  run -0 belay online beat shop 7 42 "web 9"
  is "$output" ""
  is "$(belay online count shop)" 3
  is "$(belay online is shop 7)" online
  run -1 belay online is shop 8
  is "$output" "not online"
  run -0 belay online is shop 7 "web 9"
  run -1 belay online is shop 7 8 42
  is "$output" $'7\tyes\n8\tno\n42\tyes'
  is "$(belay online list shop | sort)" $'42\n7\nweb 9'
  belay online leave shop "web 9" 8
  is "$(belay online list shop | sort)" $'42\n7'
  belay online reset shop
  is "$(belay online count shop)" 0
  is "$(belay online list shop)" ""
  is "$(ask_server DBSIZE)" 0
}

@test "--json" {
  belay online beat shop 7
  is "$(belay online is shop 7 8 --json)" \
    $'{"member":"7","online":true}\n{"member":"8","online":false}'
  is "$(belay online count shop --json)" '{"site":"shop","online":1}'
  is "$(belay online list shop --json)" '{"member":"7"}'
}

@test "members expire one by one with --window, all together without it" {
  belay online beat brief a --window 1s
  belay online beat long a b
  is "$(belay online list long | sort)" $'a\nb'
  wait_until eval '[ "$(belay online count brief)" = 0 ]'
  is "$(belay online list brief)" ""
  run -1 belay online is brief a
  (($(ask_server PTTL "belay::dedup::{long}::online") > 80000000))
}

@test "the server stores the window of a site; another --window is an error" {
  belay online beat shop 7 --window 1h
  belay online beat shop 8
  is "$(belay online count shop)" 2
  is "$(belay online list shop | sort)" $'7\n8'
  is "$(belay online is shop 8)" online
  for command in "beat shop 9" "count shop" "is shop 7" "leave shop 7" "reset shop" "list shop"; do
    run -123 belay online $command --window 90m
    has "$output" "shop was made with --window 1h, and --window 1h30m was given"
  done
  belay online leave shop 8
  is "$(belay online list shop)" 7
  belay online reset shop
  is "$(ask_server DBSIZE)" 0
  belay online beat shop 1
  run -123 belay online count shop --window 1h
  has "$output" "shop was made with --window none, and --window 1h was given"
  run -1 belay online leave other 1
  has "$output" "there is no configuration of other"
}

@test "a list of more members than one page" {
  belay online beat many --window 1h $(seq 3000)
  is "$(belay online list many | sort -n)" "$(seq 3000)"
}

@test "invalid arguments are refused" {
  for wrong in "beat shop" "count" "count shop --window 1ms" "is shop"; do
    run -2 belay online $wrong
  done
  run -2 belay online beat shop "$(head -c 513 /dev/zero | tr '\0' x)"
  ask_server FLUSHALL # the record of the site
  run -2 belay online beat shop $(seq 16385)
  has "$output" "more than 16384"
  is "$(ask_server DBSIZE)" 0
}

@test "no server: 120; a full disk: 123" {
  run -120 belay online beat shop 1 --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: online beat: cannot change SITE: no server could be reached"
  belay online beat shop $(seq 100)
  run -123 bash -c 'belay online list shop >/dev/full'
  run -123 bash -c 'belay online count shop >/dev/full'
  run -0 --separate-stderr \
    bash -c '{ belay online list shop; echo $? >"$HOME/status"; } | head -n 1'
}
