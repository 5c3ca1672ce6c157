#!/usr/bin/env bats
# Commands over TLS, with a password in a file.
load helper

# signed NAME EXTENSION...: make a key, and a certificate of the test's authority.
signed() {
  local name=$1
  shift
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$name" \
    -keyout "$HOME/$name.key" -out "$HOME/$name.request"
  printf '%s\n' "$@" >"$HOME/$name.extensions"
  openssl x509 -req -days 2 -in "$HOME/$name.request" -CA "$HOME/ca.crt" -CAkey "$HOME/ca.key" \
    -CAcreateserial -extfile "$HOME/$name.extensions" -out "$HOME/$name.crt"
}

set_up() {
  require openssl
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca \
    -keyout "$HOME/ca.key" -out "$HOME/ca.crt" 2>/dev/null
  signed server subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
  signed client extendedKeyUsage=clientAuth 2>/dev/null
  local port
  port=$(free_port)
  start_server --tls-port "$port" --tls-auth-clients no --tls-ca-cert-file "$HOME/ca.crt" \
    --tls-cert-file "$HOME/server.crt" --tls-key-file "$HOME/server.key"
  ask_server CONFIG SET requirepass hunter2
  (umask 077 && echo hunter2 >"$HOME/password")
  export BELAY_URL=rediss://localhost:$port
}

@test "a certificate authority and a password file: exec, count, ls" {
  local with=(--tls-ca "$HOME/ca.crt" --password-file "$HOME/password")
  is "$(belay count add k "${with[@]}")" 1
  run -0 belay exec job "${with[@]}" -- belay ls --json "${with[@]}"
  is "$(json 'o["kind"], o["name"]')" "('lock', 'job')"
  run -1 belay ls job "${with[@]}"
  export BELAY_TLS_CA=$HOME/ca.crt BELAY_PASSWORD_FILE=$HOME/password
  is "$(belay count add k)" 2
  run -7 belay exec job -- sh -c 'exit 7'
  run -0 belay exec job -- belay show job
  has "$(REDISCLI_AUTH=hunter2 redis-cli -p "${BELAY_URL##*:}" --tls --cacert "$HOME/ca.crt" \
    KEYS '*')" 'belay::counter::{k}'
}

@test "another authority, another name, another password: refused, and nothing is run" {
  export BELAY_PASSWORD_FILE=$HOME/password
  for command in "count add k" "ls" "exec job -- touch $HOME/ran"; do
    run -120 belay $command
    has "$output" certificate
    lacks "$output" hunter2
    BELAY_TLS_CA=$HOME/ca.crt BELAY_TLS_SERVER_NAME=elsewhere run -120 belay $command
    has "$output" certificate
    BELAY_URL=${BELAY_URL/rediss/redis} run -120 belay $command
  done
  echo another >"$HOME/password"
  BELAY_TLS_CA=$HOME/ca.crt run -123 belay exec job -- touch "$HOME/ran"
  lacks "$output" another
  [ ! -e "$HOME/ran" ]
}

@test "ping reports a wrong certificate, as count does" {
  export BELAY_PASSWORD_FILE=$HOME/password
  run -120 belay count get k
  has "$output" "signed by an unknown authority"
  run -120 belay ping
  has "$output" "signed by an unknown authority"
  run -120 belay ping --json
  has "$(json 'o["detail"]')" "signed by an unknown authority"
  BELAY_TLS_CA=$HOME/ca.crt BELAY_TLS_SERVER_NAME=elsewhere run -120 belay ping
  has "$output" "for another name than elsewhere"
  BELAY_TLS_CA=$HOME/ca.crt run -0 belay ping --json
  is "$(json 'o["detail"]')" None
}

@test "a server that requires a client certificate" {
  export BELAY_TLS_CA=$HOME/ca.crt BELAY_PASSWORD_FILE=$HOME/password
  REDISCLI_AUTH=hunter2 ask_server CONFIG SET tls-auth-clients yes
  run -120 belay count add k
  has "$output" "demands a certificate"
  is "$(belay count add k --tls-cert "$HOME/client.crt" --tls-key "$HOME/client.key")" 1
  cat "$HOME/client.key" >>"$HOME/client.crt"
  run -0 env BELAY_TLS_CERT="$HOME/client.crt" belay exec job -- echo ran
  is "$output" ran
}
