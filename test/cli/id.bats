#!/usr/bin/env bats
# belay id.
load helper

@test "a machine takes the same snowflake worker again, and its second id does not wait" {
  worker() {
    belay id decode "$(belay id snowflake n --ahead 100ms)" --json |
      python3 -c 'import json, sys; print(json.load(sys.stdin)["worker"])'
  }
  local first
  start_server
  first=$(worker)
  is "$(worker)" "$first"
  is "$(worker)" "$first"
}

@test "UUIDs of version 7, without a server" {
  run -0 belay id uuid --count 1000
  is "$(sort -u <<<"$output" | wc -l)" 1000
  local form='^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
  is "$(grep -cE "$form" <<<"$output")" 1000
  run -0 belay id uuid --json
  is "$(json 'len(o["id"])')" 36
}

@test "a sequence has no gaps, with several processes" {
  start_server
  is "$(belay id sequence invoices)" 1
  is "$(belay id sequence invoices --count 3)" $'2\n3\n4'
  is "$(belay id sequence invoices --kind credit --start 100)" 100
  is "$(belay id sequence invoices --json)" '{"id":"5"}'
}

@test "segments: no id comes twice, with several processes" {
  start_server
  for i in {1..10}; do start_command belay id segment users --count 50 >"$HOME/ids.$i"; done
  for pid in "${started[@]:1}"; do wait "$pid"; done
  is "$(cat "$HOME"/ids.* | sort -nu | wc -l)" 500
}

@test "decode returns the parts of a snowflake" {
  start_server
  local before after
  before=$(date +%s%3N)
  run -0 belay id snowflake orders --worker 7 --timeout 30s
  after=$(date +%s%3N)
  run -0 belay id decode "$output" --json
  is "$(json 'o["worker"]')" 7
  # Issued ahead of the clock by no more than --ahead.
  is "$(json "$before <= o['unix_ms'] <= $after + 1000")" True
}

@test "a worker that is in use is refused: 121" {
  start_server
  start_command belay id snowflake orders --worker 7 --ahead 1m --timeout 1m --ttl 1h
  wait_until eval '[ "$(ask_server DBSIZE)" -gt 0 ]'
  run -121 belay id snowflake orders --worker 7 --ahead 1m --timeout 5s
  has "$output" "another holder has it"
}

@test "invalid ids are refused" {
  run -2 belay id decode x
  run -2 belay id decode -5
  run -2 belay id sequence x --count 0
  run -2 belay id sequence x --count 65537
  has "$output" "--count is not from 1 to 65536"
}
