#!/usr/bin/env bats
# ls, show, break, sweep and ping on deployments of several servers.
load helper

@test "a cluster: ls, show, break, sweep and ping use all nodes" {
  local ports=() nodes=() i
  for i in 1 2 3; do
    ports+=("$(free_port)")
    start_server --port "${ports[-1]}" --cluster-enabled yes
    nodes+=("127.0.0.1:${ports[-1]}")
  done
  redis-cli --cluster create "${nodes[@]}" --cluster-yes >/dev/null
  export BELAY_URL=redis+cluster://${nodes[0]}
  well() { redis-cli -p "${ports[$1]}" CLUSTER INFO | grep -q cluster_state:ok; }
  for i in 0 1 2; do wait_until well "$i"; done

  run -0 belay ping --json
  is "$(json 'o["server"]' | sort)" "$(printf '%s\n' "${nodes[@]}" | sort)"
  is "$(json 'o["role"], o["reached"], o["samples"]' | sort -u)" "('primary', True, 5)"

  for i in {1..9}; do hold lock "n$i" web-1; done
  run -0 belay ls --json
  is "$(json 'o["name"]')" "$(printf 'n%s\n' {1..9})"
  run -0 belay show n7
  has "$output" "held by web-1"
  run -0 belay break n7 --yes
  run -1 belay show n7
  run -130 on_terminal --when "held 8 " --type ^C env TERM=xterm belay top
}

@test "a primary with sentinels" {
  local port sentinel
  port=$(free_port)
  sentinel=$(free_port)
  start_server --port "$port"
  printf '%s\n' "port $sentinel" "dir $server_folder" "sentinel monitor main 127.0.0.1 $port 1" \
    >"$server_folder/sentinel.conf"
  start_command bash -c 'exec -a redis-sentinel "$@"' server "$(server_program)" \
    "$server_folder/sentinel.conf" --sentinel >"$server_folder/sentinel.log"
  wait_until redis-cli -p "$sentinel" PING
  export BELAY_URL=redis+sentinel://127.0.0.1:$sentinel/main
  run -0 belay ping --json
  is "$(json 'o["server"], o["role"]')" "('127.0.0.1:$port', 'primary')"
  hold election chief web-1
  run -0 belay ls --json
  is "$(json 'o["kind"], o["name"], o["owner"]')" "('election', 'chief', 'web-1')"
  run -0 belay break chief --yes
  run -1 belay show chief --quiet
  run -120 belay ping --url "redis+sentinel://127.0.0.1:$sentinel/nobody" --timeout 1s
}

@test "a user with the rights of belay acl only" {
  start_server
  hold lock orders web-1
  belay acl --user watch --namespace belay held sweep topology 2>/dev/null | ask_server
  ask_server ACL SETUSER watch '>hunter2'
  export BELAY_USER=watch BELAY_PASSWORD=hunter2
  run -0 belay ls --json
  is "$(json 'o["name"]')" orders
  run -0 belay show orders
  run -0 belay ping
  run -130 on_terminal --when "held 1 " --type ^C env TERM=xterm belay top
  run -0 belay break orders --yes
  run -123 belay count add k
  has "$output" "may not run this command"
  ask_server ACL SETUSER watch '-info' '-time'
  run -0 belay ping --json
  is "$(json 'o["role"], o["rtt_min_us"]')" "('primary', None)"
}
