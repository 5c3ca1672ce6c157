#!/usr/bin/env bats
# Settings of the environment; passwords.
load helper

set_up() { start_server; }

# write_password FILE: readable by its owner only.
write_password() {
  echo hunter2 >"$1"
  chmod 600 "$1"
}

# Prints the key of a counter, which begins with the namespace.
namespace() {
  ask_server FLUSHALL >/dev/null
  belay count add k "$@" >/dev/null
  ask_server KEYS '*'
}

@test "the command line, then the environment, then the default" {
  is "$(namespace)" 'belay::counter::{k}'
  export BELAY_NAMESPACE=environment
  is "$(namespace)" 'environment::counter::{k}'
  is "$(namespace --namespace line)" 'line::counter::{k}'
  is "$(BELAY_NAMESPACE='' namespace)" 'belay::counter::{k}'
}

@test "--url and --timeout replace those of the environment" {
  local url=$BELAY_URL
  is "$(BELAY_URL=redis://127.0.0.1:1 belay count add k --url "$url")" 1
  BELAY_URL=redis://127.0.0.1:1 BELAY_TIMEOUT=100ms run -120 belay count add k
  is "$(BELAY_TIMEOUT=1ms belay count add k --timeout 10s)" 2
}

@test "several URLs for a command that uses one server" {
  BELAY_URL="$BELAY_URL $BELAY_URL" run -2 belay count get k
  has "$output" "--url: at most 1"
  BELAY_URL="$BELAY_URL $BELAY_URL" run -2 belay exec job -- true
  has "$output" "--redlock needs several servers"
}

@test "an invalid value of the environment: its name, and not the value" {
  BELAY_TIMEOUT=hunter2 run -2 belay count get k
  has "$output" "BELAY_TIMEOUT is not a duration"
  lacks "$output" hunter2
}

# ---- passwords ----

@test "a password from the environment, or a password file" {
  ask_server CONFIG SET requirepass hunter2
  run -123 belay count get k
  BELAY_PASSWORD=hunter2 belay count add k
  write_password "$HOME/password"
  is "$(belay count get k --password-file "$HOME/password")" 1
  is "$(BELAY_PASSWORD_FILE=$HOME/password belay count get k)" 1
  is "$(BELAY_PASSWORD=wrong belay count get k --password-file "$HOME/password")" 1
  BELAY_PASSWORD=wrong run -123 belay count get k
  is "$(BELAY_PASSWORD=wrong belay count get k --url "unix://:hunter2@$server_socket")" 1
  ask_server -a hunter2 ACL SETUSER me on '>other' '~*' '+@all'
  is "$(BELAY_USER=me BELAY_PASSWORD=other belay count get k)" 1
  is "$(BELAY_PASSWORD=other belay count get k --user me)" 1
  is "$(BELAY_PASSWORD=other belay count get k --url "unix://me@$server_socket")" 1
}

@test "a password file that all users can read is refused; a pipe is not" {
  ask_server CONFIG SET requirepass hunter2
  write_password "$HOME/password"
  chmod 644 "$HOME/password"
  run -2 belay count add k --password-file "$HOME/password"
  is "$output" "belay: count add: password file $HOME/password: has a password, and all users can read it: run chmod o= on it"
  BELAY_PASSWORD_FILE=$HOME/password run -2 belay count add k
  chmod 640 "$HOME/password"
  is "$(belay count add k --password-file "$HOME/password")" 1
  is "$(belay count add k --password-file <(echo hunter2))" 2
}

@test "a missing or empty password file" {
  run -2 belay count get k --password-file "$HOME/nowhere"
  has "$output" "password file"
  (umask 077 && : >"$HOME/empty")
  run -2 belay count get k --password-file "$HOME/empty"
  has "$output" "has no password"
  echo >"$HOME/empty"
  run -2 belay count get k --password-file "$HOME/empty"
  has "$output" "has no password"
}

@test "a password file has at most 70,000 bytes, and no byte 0" {
  run -2 timeout 20 belay count get k --password-file /dev/zero
  has "$output" "has a byte 0"
  run -2 belay count get k --password-file <(printf 'hunter2\0hunter2')
  has "$output" "has a byte 0"
  lacks "$output" hunter2
  run -2 timeout 20 belay count get k --password-file <(yes)
  has "$output" "is longer than 70000 bytes"
}

@test "a password is in no output, and on no command line" {
  ask_server CONFIG SET requirepass another
  BELAY_PASSWORD=hunter2 run -123 belay count get k --verbose
  lacks "$output" hunter2
  BELAY_URL=unix://:hunter2@$server_socket run -123 belay count get k --verbose
  lacks "$output" hunter2
  run -2 belay count get k --password hunter2
  lacks "$output" hunter2
  kill -STOP "$server"
  BELAY_PASSWORD=hunter2 start_command belay count get k --timeout 1m
  local pid=$begun
  wait_until grep -qz belay "/proc/$pid/cmdline"
  lacks "$(tr '\0' ' ' <"/proc/$pid/cmdline")" hunter2
}
