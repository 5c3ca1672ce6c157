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
  is "$(belay online is shop 7 8 --json)" $'{"id":7,"online":true}\n{"id":8,"online":false}'
  is "$(belay online count shop --json)" '{"site":"shop","online":1}'
  is "$(belay online list shop --json)" '{"id":7}'
}

@test "with a window they are gone by themselves" {
  belay online beat shop 7 --window 2s --slices 1
  is "$(belay online count shop --window 2s --slices 1)" 1
  is "$(belay online list shop --window 2s --slices 1)" 7
  wait_until eval '[ "$(belay online count shop --window 2s --slices 1)" = 0 ]'
  run -1 belay online is shop 7 --window 2s --slices 1
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
  run -2 belay online beat shop $(seq 16385)
  has "$output" "more than 16384"
  is "$(ask DBSIZE)" 0
}

@test "no server: 120; a full disk: 123" {
  run -120 belay online beat shop 1 --url redis://127.0.0.1:1 --timeout 100ms
  has "$output" "belay: online beat: cannot tell: no server could be reached"
  belay online beat shop $(seq 100)
  run -123 bash -c 'belay online list shop >/dev/full'
  run -123 bash -c 'belay online count shop >/dev/full'
  run -0 --separate-stderr bash -c '{ belay online list shop; echo $? >"$HOME/status"; } | head -n 1'
  is "$output" 1
}
