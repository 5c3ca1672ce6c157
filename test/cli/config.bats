#!/usr/bin/env bats
# Settings of the command line, the environment and files; passwords.
load helper

set_up() { start_server; }

# write_settings FILE LINE...: write a file that only its owner can read.
write_settings() {
  local file=$1
  shift
  mkdir -p "${file%/*}"
  printf '%s\n' "$@" >"$file"
  chmod 600 "$file"
}

# Prints the key of a counter, which begins with the namespace.
namespace() {
  ask_server FLUSHALL >/dev/null
  belay count add k "$@" >/dev/null
  ask_server KEYS '*'
}

@test "the command line, then the environment, then the user's file, then the default" {
  unset BELAY_CONFIG
  is "$(namespace)" 'belay::counter::{k}'
  write_settings "$HOME/.config/belay/config" 'namespace = home'
  is "$(namespace)" 'belay::counter::{k}' # XDG_CONFIG_HOME is another folder
  is "$(XDG_CONFIG_HOME='' namespace)" 'home::counter::{k}'
  write_settings "$XDG_CONFIG_HOME/belay/config" '# mine' '' '  namespace=file::part  '
  is "$(namespace)" 'file::part::counter::{k}'
  export BELAY_NAMESPACE=environment
  is "$(namespace)" 'environment::counter::{k}'
  is "$(namespace --namespace line)" 'line::counter::{k}'
  is "$(BELAY_NAMESPACE='' namespace)" 'file::part::counter::{k}'
}

@test "--config and BELAY_CONFIG name the only file" {
  write_settings "$XDG_CONFIG_HOME/belay/config" 'namespace = usual'
  write_settings "$HOME/one" 'namespace = one'
  write_settings "$HOME/two" 'namespace = two'
  is "$(BELAY_CONFIG=$HOME/one namespace)" 'one::counter::{k}'
  is "$(BELAY_CONFIG=$HOME/one namespace --config "$HOME/two")" 'two::counter::{k}'
  run -2 belay count get k --config "$HOME/three"
  has "$output" "No such file"
}

@test "--url and --timeout replace those of the environment, and these those of a file" {
  local url=$BELAY_URL
  write_settings "$HOME/settings" "url = $url" 'timeout = 10s'
  is "$(BELAY_URL=redis://127.0.0.1:1 belay count add k --url "$url")" 1
  BELAY_URL=redis://127.0.0.1:1 BELAY_TIMEOUT=100ms \
    run -120 belay count add k --config "$HOME/settings"
  is "$(BELAY_TIMEOUT=1ms belay count add k --timeout 10s)" 2
  unset BELAY_URL
  is "$(belay count add k --config "$HOME/settings")" 3
}

@test "several URLs for a command that uses one server" {
  write_settings "$HOME/settings" "url = $BELAY_URL" "url = $BELAY_URL"
  BELAY_URL="$BELAY_URL $BELAY_URL" run -2 belay count get k
  has "$output" "--url: at most 1"
  BELAY_URL="$BELAY_URL $BELAY_URL" run -2 belay exec job -- true
  has "$output" "--redlock needs several servers"
  unset BELAY_URL
  run -2 belay count get k --config "$HOME/settings"
  has "$output" "--url: at most 1"
}

@test "an invalid value of the environment: its name, and not the value" {
  BELAY_TIMEOUT=hunter2 run -2 belay count get k
  has "$output" "BELAY_TIMEOUT is not a duration"
  lacks "$output" hunter2
}

@test "an error in a file: its line number, and not its text" {
  local line
  for line in 'nmespace = hunter2' 'hunter2' 'namespace = ' 'timeout = hunter2' 'json = hunter2' \
    'verbose = hunter2' 'config = hunter2' '= hunter2' 'user = hunter2'; do
    write_settings "$HOME/settings" 'user = me' "$line"
    run -2 belay count get k --config "$HOME/settings"
    has "$output" "$HOME/settings:2: "
    lacks "$output" hunter2
    case $line in
      user*) has "$output" "user is set twice" ;;
      nmespace* | json* | verbose* | config* | =*) has "$output" "there is no such setting" ;;
    esac
  done
  write_settings "$HOME/settings" 'password = x' 'password-file = y'
  run -2 belay count get k --config "$HOME/settings"
  has "$output" "is set twice"
}

@test "a settings file is a regular file of at most 1 MiB, without a byte 0" {
  local file
  for file in /dev/zero /dev/null "$HOME" <(echo 'namespace = piped'); do
    run -2 timeout 20 belay count get k --config "$file"
    has "$output" "$file: is not a regular file"
  done
  mkfifo "$HOME/pipe" # without a writer
  run -2 timeout 20 belay count get k --config "$HOME/pipe"
  write_settings "$HOME/settings" 'namespace = x'
  printf 'user = me\0password = hunter2\n' >>"$HOME/settings"
  run -2 belay count get k --config "$HOME/settings"
  has "$output" "$HOME/settings: has a byte 0"
  lacks "$output" hunter2
  yes '# comment' | head -c 1048576 >"$HOME/settings"
  run -1 belay count get k --config "$HOME/settings"
  echo >>"$HOME/settings"
  run -2 belay count get k --config "$HOME/settings"
  has "$output" "is longer than 1048576 bytes"
}

# ---- passwords ----

@test "a password from the environment, a password file, or a settings file" {
  ask_server CONFIG SET requirepass hunter2
  run -123 belay count get k
  BELAY_PASSWORD=hunter2 belay count add k
  write_settings "$HOME/password" hunter2
  is "$(belay count get k --password-file "$HOME/password")" 1
  is "$(BELAY_PASSWORD_FILE=$HOME/password belay count get k)" 1
  is "$(BELAY_PASSWORD=wrong belay count get k --password-file "$HOME/password")" 1
  write_settings "$HOME/settings" 'password = hunter2'
  is "$(belay count get k --config "$HOME/settings")" 1
  BELAY_PASSWORD=wrong run -123 belay count get k --config "$HOME/settings"
  is "$(BELAY_PASSWORD=wrong belay count get k --url "unix://:hunter2@$server_socket")" 1
  ask_server -a hunter2 ACL SETUSER me on '>other' '~*' '+@all'
  is "$(BELAY_USER=me BELAY_PASSWORD=other belay count get k)" 1
  is "$(BELAY_PASSWORD=other belay count get k --user me)" 1
  is "$(BELAY_PASSWORD=other belay count get k --url "unix://me@$server_socket")" 1
}

@test "a settings file with a password that all users can read is refused" {
  local line
  for line in 'password = hunter2' 'url = redis://:hunter2@nowhere'; do
    write_settings "$HOME/settings" "$line"
    chmod 644 "$HOME/settings"
    run -2 belay count get k --config "$HOME/settings"
    has "$output" "chmod o= "
    BELAY_PASSWORD=x run -2 belay count get k --config "$HOME/settings"
    lacks "$output" hunter2
  done
  write_settings "$HOME/settings" 'namespace = harmless'
  chmod 644 "$HOME/settings"
  run -1 belay count get k --config "$HOME/settings"
}

@test "a password file that all users can read is refused; a pipe is not" {
  ask_server CONFIG SET requirepass hunter2
  write_settings "$HOME/password" hunter2
  chmod 644 "$HOME/password"
  run -2 belay count add k --password-file "$HOME/password"
  is "$output" "belay: count add: password file $HOME/password: has a password,"\
" and all users can read it: run chmod o= on it"
  BELAY_PASSWORD_FILE=$HOME/password run -2 belay count add k
  write_settings "$HOME/settings" "password-file = $HOME/password"
  run -2 belay count add k --config "$HOME/settings"
  chmod 640 "$HOME/password"
  BELAY_PASSWORD=wrong run -123 belay count add k --config "$HOME/settings"
  is "$(belay count add k --config "$HOME/settings")" 1
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
