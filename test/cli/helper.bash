# What the tests of the belay command have in common: `load helper`. They find `belay` on the PATH as it was installed,
# in a world of their own: no settings of whoever runs them.
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
  unset "${!BELAY_@}" NO_COLOR
  export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/settings LC_ALL=C.UTF-8
  : >"$HOME/none"
  export BELAY_CONFIG=$HOME/none # not the machine's own
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

# For the files to replace: what each of their tests begins with.
set_up() { :; }

# begin COMMAND...: runs it beside the test, and ends it with the test. Its process id is $!, and in $begun. What it says
# goes where the caller says.
begin() {
  "$@" 3>&- &
  begun=$!
  started+=("$begun")
}

# new_folder: $server_folder, for sockets, whose paths have to be short.
new_folder() {
  server_folder=$(mktemp -d /tmp/belay-cli-XXXXXX)
  server_folders+=("$server_folder")
}

# start_server [ARGUMENT...]: a server of the test's own; $BELAY_URL is its, $server its process id, $server_socket
# where it listens.
start_server() {
  new_folder
  server_socket=$server_folder/s
  serve "$@"
  export BELAY_URL=unix://$server_socket
}

# The same once more, at the same place, with nothing in it.
serve() {
  begin bash -c 'exec -a redis-server "$@"' server "$(server_program)" --port 0 --unixsocket "$server_socket" \
    --dir "$server_folder" --save '' "$@" >"$server_folder/log"
  server=$begun
  wait_until ask PING
}

# start_relay [SECONDS]: to that server: see relay.py. $relay is its process id, $relay_url its URL.
start_relay() {
  relay_url=unix://$server_folder/r
  begin python3 "$here/support/relay.py" "$server_folder/r" "$server_socket" "$@"
  relay=$begun
  wait_until test -S "$server_folder/r"
}

# A port that nobody listens on, nor on that 10,000 above it.
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

server_program() { command -v redis-server || command -v valkey-server || command -v redis-check-rdb; }

# ask COMMAND...: of the server, past belay.
ask() { redis-cli -s "$server_socket" "$@" 2>/dev/null; }

# hold KIND NAME LABEL [URL]...: has something held beside the test (see holder.c), at $BELAY_URL if nothing else is said;
# its process id is in $begun. Returns when it is held; wait_for: at once, since it will wait.
hold() {
  wait_for "$@"
  wait_until grep -q held "$HOME/holder-$begun"
}
wait_for() {
  local said=$HOME/holder
  [ $# -gt 3 ] || set -- "$@" "$BELAY_URL"
  begin "$CLI_HOLDER" "$@" >"$said-new"
  mv "$said-new" "$said-$begun"
}

# wait_until COMMAND...: until it succeeds. The machine may be busy.
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

# catches PID SIGNAL: whether that process has a handler for it by now.
catches() {
  local mask
  mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
  (((0x$mask >> ($(kill -l "$2") - 1)) & 1))
}

# A command that says "begun" on standard error, and waits for the signal that ends it. It is one program that does both: a
# shell (dash) forgets a SIGINT that comes while it starts what is to wait.
waits=(sh -c 'echo begun >"$HOME/begun"; exec tail -f "$HOME/begun" >&2')

now_ms() { date +%s%3N; }
is_gone() { [[ $(ps -o stat= -p "$1") != [^Z]* ]]; }

# ~/lives [stubborn]: a command that says in a file (beats) that it lives, again and again, in a process (pid) that it has
# started itself; and which signals it got, and when (asked). If it is stubborn it goes on.
cat_lives() {
  cat >"$HOME/lives" <<'END'
#!/bin/bash
trap 'date +%s%3N >"$HOME/asked"; echo term >>"$HOME/signals"; [ "$1" = stubborn ] || exit 0' TERM
bash -c 'trap "" TERM; while :; do date +%s%3N >>"$HOME/beats"; sleep 0.01; done' & echo $! >"$HOME/pid"
until [ -s "$HOME/beats" ]; do sleep 0.01; done
echo alive
while :; do sleep 0.05; done
END
  chmod +x "$HOME/lives"
}

# begin_giving_back COMMAND...: a belay that runs a command, which ends with status 7 when the server stands still.
begin_giving_back() {
  rm -f "$HOME/go"
  begin "$@" --timeout 30s -- sh -c 'touch "$HOME/ready"; until [ -e "$HOME/go" ]; do sleep 0.05; done; exit 7' 2>/dev/null
  wait_until test -e "$HOME/ready"
  rm "$HOME/ready"
  kill -STOP "$server"
  touch "$HOME/go"
  no_child() { ! pgrep -P "$begun"; }
  wait_until no_child
}

# expect_given_back KEYS COMMAND...: so, and a signal does not drop that: none of these keys is left. A second one ends it.
expect_given_back() {
  local keys=$1 status=0
  shift
  begin_giving_back "$@"
  kill -TERM "$begun"
  sleep 0.3
  run -1 is_gone "$begun"
  kill -CONT "$server"
  wait "$begun" || status=$?
  is "$status" 7
  is "$(ask KEYS "$keys")" ""
  begin_giving_back "$@"
  status=0
  tell "$begun" TERM
  wait "$begun" || status=$?
  is "$status" 143
}

# tell PID SIGNAL: again and again, until it ends.
tell() { wait_until eval "kill -$2 $1; is_gone $1"; }

# on_terminal [--when TEXT --type KEYS]... COMMAND...: on a pseudo-terminal: see terminal.py.
on_terminal() { python3 "$here/support/terminal.py" "$@"; }

# json EXPRESSION: what Python says of the object `o` in each line of $output.
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
