#!/usr/bin/env bats
# belay ping.
load helper

@test "one server" {
  start_server
  run -0 belay ping
  is "${#lines[@]}" 2
  [[ ${lines[0]} =~ ^SERVER\ +ROLE\ +VERSION\ +MIN\ +MEDIAN\ +CLOCK\ +ERROR\ +STATE$ ]]
  local ms='[0-9.]+ms'
  [[ ${lines[1]} =~ ^$server_socket\ +primary\ +[a-z]+\ [0-9.]+\ +$ms\ +$ms\ +[+-]$ms\ +$ms$ ]]
  run -0 belay ping --json --count 7
  is "$(json 'o["server"], o["role"], o["reached"], o["error"], o["samples"]')" \
    "('$server_socket', 'primary', True, None, 7)"
  # the same clock: the difference is smaller than its error
  is "$(json '0 <= o["rtt_min_us"] <= o["rtt_median_us"]')" True
  is "$(json 'abs(o["clock_ahead_us"]) <= o["clock_error_us"]')" True
  is "$(json 'o["version"]')" \
    "$(ask_server INFO server | tr -d '\r' | sed -n 's/^redis_version://p')"
  is "$(json 'o["run_id"]')" "$(ask_server INFO server | tr -d '\r' | sed -n 's/^run_id://p')"
}

@test "a server's clock ahead, and behind" {
  start_server
  local hour=3600000000
  for sign in + -; do
    start_relay "${sign}3600"
    run -0 belay ping --url "$relay_url" --json
    is "$(json "abs(o['clock_ahead_us'] - ${sign}$hour) <= o['clock_error_us'] < $hour / 10")" True
    run -0 belay ping --url "$relay_url"
    # about an hour, to the minute
    [[ ${lines[1]} =~ ms\ +[$sign]3(5[4-9]|6[0-5])[0-9]{4}\.[0-9]{3}ms\  ]]
    rm "$server_folder/r"
  done
}

@test "a primary and its replica" {
  start_server
  local port
  port=$(free_port)
  ask_server CONFIG SET port "$port"
  ask_server CONFIG SET repl-diskless-sync-delay 0
  start_server
  local other
  other=$(free_port)
  ask_server CONFIG SET port "$other"
  ask_server REPLICAOF 127.0.0.1 "$port"
  both() {
    run belay ping --url "redis+replicas://127.0.0.1:$port" --json &&
      [ "$(json 'o.get("in_sync", o["replicas"])')" = $'1\nTrue' ]
  }
  wait_until both
  is "$(json 'o["server"], o["role"], o["primary"]')" \
    "('127.0.0.1:$port', 'primary', None)
('127.0.0.1:$other', 'replica', '127.0.0.1:$port')"
  run -0 belay ping --url "redis+replicas://127.0.0.1:$other"
  has "$output" "in sync"
  has "$output" "1 replica"
}

@test "several servers, some of them away: 1; all: 120" {
  start_server
  run -0 belay ping --url "$BELAY_URL" --url "$BELAY_URL" --json
  is "$(json 'o["deployment"]')" "$server_socket"$'\n'"$server_socket"
  run -1 belay ping --url unix:///nonexistent --url "$BELAY_URL" --timeout 300ms
  [[ $output =~ /nonexistent.*no\ server\ could\ be\ reached ]]
  [[ $output =~ $server_socket\ +primary ]]
  run -120 belay ping --url redis://me:hunter2@127.0.0.1:1 --timeout 300ms
  lacks "$output" hunter2
  run -120 belay ping --url redis+sentinel://127.0.0.1:1/main --timeout 300ms
  kill -STOP "$server"
  run belay ping --timeout 300ms
  [ "$status" = 120 ] || [ "$status" = 123 ]
}

@test "invalid options, and a full disk" {
  start_server
  for count in 0 101 x; do run -2 belay ping --count "$count"; done
  run -2 belay ping what
  run -123 bash -c 'belay ping >/dev/full'
  run -123 bash -c 'belay ping --json >/dev/full'
  run -0 belay ping --quiet
  is "$output" ""
}
