#!/usr/bin/env bats
# belay online.
load helper

set_up() { start_server; }

@test "who was seen is online, until he leaves" {
  run -0 belay online beat shop 7 42 9
  is "$output" ""
  is "$(belay online count shop)" 3
  is "$(belay online is shop 7)" online
  run -1 belay online is shop 8
  is "$output" "not online"
  run -0 belay online is shop 7 9
  run -1 belay online is shop 7 8 9
  is "$output" $'7\tyes\n8\tno\n9\tyes'
  is "$(belay online list shop)" $'7\n9\n42'
  belay online leave shop 9 8
  is "$(belay online list shop)" $'7\n42'
  belay online reset shop
  is "$(belay online count shop)" 0
  is "$(belay online list shop)" ""
}

@test "--json" {
  belay online beat shop 7
  is "$(belay online is shop 7 8 --json)" $'{"id":"7","online":true}\n{"id":"8","online":false}'
  is "$(belay online count shop --json)" '{"site":"shop","online":1}'
  is "$(belay online list shop --json)" '{"id":"7"}'
}

@test "with a window they are gone by themselves" {
  belay online beat shop 7 --window 2s --slices 1
  is "$(belay online count shop --window 2s --slices 1)" 1
  is "$(belay online list shop --window 2s --slices 1)" 7
  wait_until eval '[ "$(belay online count shop --window 2s --slices 1)" = 0 ]'
  run -1 belay online is shop 7 --window 2s --slices 1
}

@test "a site's window is kept: no command needs it again, and none can contradict it" {
  belay online beat shop 7 --window 1h --slices 2
  belay online beat shop 8
  is "$(belay online count shop)" 2
  is "$(belay online list shop)" $'7\n8'
  is "$(belay online is shop 8)" online
  for command in "beat shop 9" "count shop" "is shop 7" "leave shop 7" "reset shop" "list shop"; do
    run -123 belay online $command --window 90m
    has "$output" "shop was made with --window 1h, and --window 1h30m was given"
  done
  run -123 belay online beat shop web-1 --names
  has "$output" "shop was made with members: ids, and members: names was given"
  belay online leave shop 8
  is "$(belay online list shop)" 7
  belay online reset shop
  is "$(ask DBSIZE)" 0
  belay online beat shop 1
  run -123 belay online count shop --window 1h
  has "$output" "shop was made with --window none, and --window 1h was given"
  run -1 belay online leave other 1
  has "$output" "there is no configuration of other"
}

@test "members with names" {
  belay online beat machines web-1 "web 2" --names --window 1h
  belay online beat machines db-1
  is "$(belay online count machines)" 3
  is "$(belay online is machines web-1)" online
  run -1 belay online is machines web-1 web-3
  is "$output" $'web-1\tyes\nweb-3\tno'
  is "$(belay online list machines | sort)" $'db-1\nweb 2\nweb-1'
  is "$(belay online is machines db-1 --json)" '{"member":"db-1","online":true}'
  belay online leave machines "web 2"
  is "$(belay online list machines | sort)" $'db-1\nweb-1'
  belay online reset machines
  is "$(ask DBSIZE)" 0
  run -2 belay online beat machines web-1
  has "$output" "for names give --names with the first beat"
  run -2 belay online beat machines "$(head -c 513 /dev/zero | tr '\0' x)" --names
}

@test "members with names: gone by themselves with a window, together without one" {
  belay online beat brief a --names --window 1s
  belay online beat long a b --names
  is "$(belay online list long | sort)" $'a\nb'
  is "$(belay online list long --json | sort)" $'{"member":"a"}\n{"member":"b"}'
  wait_until eval '[ "$(belay online count brief)" = 0 ]'
  is "$(belay online list brief)" ""
  run -1 belay online is brief a
  (($(ask PTTL "belay::dedup::{long}::online") > 80000000))
  belay online beat many --names --window 1h $(seq 3000)
  is "$(belay online list many | sort -n)" "$(seq 3000)"
}

@test "a list of many, far apart, asks no further than it must" {
  belay online beat shop $(seq 0 997 160000)
  is "$(belay online list shop)" "$(seq 0 997 160000)"
  local calls
  calls=$(ask INFO stats | tr -d '\r' | sed -n 's/^total_commands_processed://p')
  ((calls < 200))
  belay online beat shop 4294967295 --max-id 4294967295
  is "$(belay online is shop 4294967295 --max-id 4294967295)" online
}

@test "what is no id is refused" {
  for wrong in "beat shop -1" "beat shop x" "beat shop 16777216" "is shop 11 --max-id 10" "beat shop" "count" \
    "count shop --window 1ms" "count shop --slices 15" "is shop 99999999999999999999"; do
    run -2 belay online $wrong
  done
  run -2 belay online beat shop
  run -2 belay online beat shop $(seq 16385)
  has "$output" "more than 16384"
  is "$(ask DBSIZE)" 0
}

@test "no server: 120; a full disk: 123" {
  run -120 belay online beat shop 1 --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: online beat: cannot change SITE: no server could be reached"
  belay online beat shop $(seq 100)
  run -123 bash -c 'belay online list shop >/dev/full'
  run -123 bash -c 'belay online count shop >/dev/full'
  run -0 --separate-stderr bash -c '{ belay online list shop; echo $? >"$HOME/status"; } | head -n 1'
  is "$output" 1
}
