# Shared by the tests of the belay command: `load helper`. They use the installed `belay` of the
# PATH, without the settings of the machine or the user.
bats_require_minimum_version 1.5.0

# require PROGRAM...: fails the test, with the program's name, unless each of them is installed.
require() {
  local program
  for program; do
    command -v "$program" >/dev/null || {
      echo "this test needs the program $program, which is not installed"
      return 1
    }
  done
}

setup() {
  require pgrep ps python3 redis-cli
  unset "${!BELAY_@}"
  export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/settings LC_ALL=C.UTF-8
  : >"$HOME/none"
  export BELAY_CONFIG=$HOME/none # instead of the machine's settings
  here=$BATS_TEST_DIRNAME
  started=()
  server_folders=()
  set_up
}

teardown() {
  local pid
  for pid in "${started[@]}"; do
    kill -CONT "$pid" 2>/dev/null || true
    kill -KILL "$pid" 2>/dev/null || true
  done
  for pid in "${started[@]}"; do
    wait "$pid" 2>/dev/null || true
  done
  [ ${#server_folders[@]} = 0 ] || rm -rf "${server_folders[@]}"
}

# A file of tests replaces it: runs before each test.
set_up() { :; }

# start_command COMMAND...: start it in the background, and kill it at the end of the test. Its
# process id is in $begun. The caller redirects its output.
start_command() {
  "$@" 3>&- &
  begun=$!
  started+=("$begun")
}

# new_folder: make $server_folder, for sockets, whose paths have to be short.
new_folder() {
  server_folder=$(mktemp -d /tmp/belay-cli-XXXXXX)
  server_folders+=("$server_folder")
}

# start_server [ARGUMENT...]: start a server for the test. Sets BELAY_URL, $server (its process id)
# and $server_socket.
start_server() {
  new_folder
  server_socket=$server_folder/s
  serve "$@"
  export BELAY_URL=unix://$server_socket
}

# serve [ARGUMENT...]: start the server again on the same socket, without data.
serve() {
  start_command bash -c 'exec -a redis-server "$@"' server "$(server_program)" --port 0 \
    --unixsocket "$server_socket" --dir "$server_folder" --save '' "$@" >"$server_folder/log"
  server=$begun
  wait_until ask_server PING
}

# start_relay [SECONDS]: start relay.py in front of the server. Sets $relay (its process id) and
# $relay_url.
start_relay() {
  relay_url=unix://$server_folder/r
  start_command python3 "$here/support/relay.py" "$server_folder/r" "$server_socket" "$@"
  relay=$begun
  wait_until test -S "$server_folder/r"
}

# Prints a free port, so that the port 10,000 above it is free too.
free_port() {
  python3 -c 'import random, socket
while True:
    port = random.randrange(20000, 50000)
    try:
        for p in port, port + 10000:
            with socket.socket() as s: s.bind(("127.0.0.1", p))
        break
    except OSError: pass
print(port)'
}

server_program() {
  command -v redis-server || command -v valkey-server || command -v redis-check-rdb
}

# ask_server COMMAND...: send a command to the server with redis-cli.
ask_server() { redis-cli -s "$server_socket" "$@" 2>/dev/null; }

# hold KIND NAME LABEL [URL]...: hold an object in the background (see holder.c), by default at
# $BELAY_URL. The process id is in $begun. hold returns after the grant, wait_for at once.
hold() {
  wait_for "$@"
  wait_until grep -q held "$HOME/holder-$begun"
}
wait_for() {
  local said=$HOME/holder
  [ $# -gt 3 ] || set -- "$@" "$BELAY_URL"
  start_command "$CLI_HOLDER" "$@" >"$said-new"
  mv "$said-new" "$said-$begun"
}

# wait_until COMMAND...: repeat it until it succeeds, for at most 30 s.
wait_until() {
  local i
  for ((i = 0; i < 600; i++)); do
    if "$@" >/dev/null 2>&1; then
      return 0
    fi
    sleep 0.05
  done
  echo "waited in vain for: $*"
  return 1
}

# catches PID SIGNAL: true if the process has a handler for the signal.
catches() {
  local mask
  mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
  (((0x$mask >> ($(kill -l "$2") - 1)) & 1))
}

# A command that prints "begun" on standard error, and waits for a signal. One program does both: a
# shell (dash) forgets a SIGINT that comes while it starts another program.
waits=(sh -c 'echo begun >"$HOME/begun"; exec tail -f "$HOME/begun" >&2')

now_ms() { date +%s%3N; }
is_gone() { [[ $(ps -o stat= -p "$1") != [^Z]* ]]; }

# cat_lives: make ~/lives [stubborn], a command with a child process (pid) that writes the time to a
# file (beats) each 10 ms. It records SIGTERM (signals) and its time (asked). If it is stubborn it
# ignores SIGTERM.
cat_lives() {
  cat >"$HOME/lives" <<'END'
#!/bin/bash
trap 'date +%s%3N >"$HOME/asked"; echo term >>"$HOME/signals"; [ "$1" = stubborn ] || exit 0' TERM
bash -c 'trap "" TERM; while :; do date +%s%3N >>"$HOME/beats"; sleep 0.01; done' &
echo $! >"$HOME/pid"
until [ -s "$HOME/beats" ]; do sleep 0.01; done
echo alive
while :; do sleep 0.05; done
END
  chmod +x "$HOME/lives"
}

# begin_releasing COMMAND...: start a belay whose command ends with status 7 after the server was
# stopped.
begin_releasing() {
  rm -f "$HOME/go"
  start_command "$@" --timeout 30s -- \
    sh -c 'touch "$HOME/ready"; until [ -e "$HOME/go" ]; do sleep 0.05; done; exit 7' 2>/dev/null
  wait_until test -e "$HOME/ready"
  rm "$HOME/ready"
  kill -STOP "$server"
  touch "$HOME/go"
  no_child() { ! pgrep -P "$begun"; }
  wait_until no_child
}

# expect_released KEYS COMMAND...: the release ignores one signal, and leaves none of these keys. A
# second signal ends belay.
expect_released() {
  local keys=$1 status=0
  shift
  begin_releasing "$@"
  kill -TERM "$begun"
  sleep 0.3
  run -1 is_gone "$begun"
  kill -CONT "$server"
  wait "$begun" || status=$?
  is "$status" 7
  is "$(ask_server KEYS "$keys")" ""
  begin_releasing "$@"
  status=0
  signal_until_gone "$begun" TERM
  wait "$begun" || status=$?
  is "$status" 143
}

# signal_until_gone PID SIGNAL: send the signal until the process has ended.
signal_until_gone() { wait_until eval "kill -$2 $1; is_gone $1"; }

# on_terminal [--when TEXT --type KEYS]... COMMAND...: run it on a pseudo-terminal: see terminal.py.
on_terminal() { python3 "$here/support/terminal.py" "$@"; }

# json EXPRESSION: evaluate it in Python for the object `o` in each line of $output.
json() { python3 -c 'import json, sys
for line in sys.stdin:
    o = json.loads(line)
    print(eval(sys.argv[1]))' "$1" <<<"$output"; }

# is ACTUAL EXPECTED
is() {
  [ "$1" = "$2" ] || {
    echo "is:       $1"
    echo "not:      $2"
    return 1
  }
}

# has TEXT PART; lacks TEXT PART
has() {
  [[ $1 == *"$2"* ]] || {
    echo "'$2' is not in: $1"
    return 1
  }
}
lacks() {
  [[ $1 != *"$2"* ]] || {
    echo "'$2' is in: $1"
    return 1
  }
}
