#!/usr/bin/env bats
# belay cache: the kept output of a command.
load helper

set_up() { start_server; }

# A command that prints the number of its runs.
cat_counts() {
  cat >"$HOME/counts" <<'END'
#!/bin/sh
echo ran >>"$HOME/runs"
wc -l <"$HOME/runs"
END
  chmod +x "$HOME/counts"
}
runs() { wc -l <"$HOME/runs"; }
has_run() { [ "$(runs)" = "$1" ]; }

@test "the command runs once; all calls write its output" {
  cat_counts
  is "$(belay cache k -- "$HOME/counts")" 1
  is "$(belay cache k -- "$HOME/counts")" 1
  is "$(belay cache other -- "$HOME/counts")" 2
  is "$(belay cache k --name n -- "$HOME/counts")" 3
  is "$(runs)" 3
}

@test "the command runs again after --ttl" {
  cat_counts
  is "$(belay cache k --ttl 300ms -- "$HOME/counts")" 1
  sleep 0.5
  is "$(belay cache k --ttl 300ms -- "$HOME/counts")" 2
}

@test "--stale: the old output at once, and a new one from the background" {
  cat_counts
  sed -i '2i [ ! -e "$HOME/runs" ] || sleep 1' "$HOME/counts"
  cached() { belay cache --ttl 3s k -n old --stale 1h -- "$HOME/counts"; }
  is "$(cached)" 1
  sleep 3.2
  local from=$EPOCHREALTIME
  is "$(cached)" 1
  is "$(cached)" 1
  local took=$((${EPOCHREALTIME/./} - ${from/./}))
  echo "# two in $took us" >&3
  wait_until has_run 2
  wait_until eval '[ "$(cached)" = 2 ]'
  is "$(runs)" 2
}

@test "--stale, many calls: one of them runs the command again" {
  cat >"$HOME/waits" <<'END'
#!/bin/sh
echo ran >>"$HOME/runs"
[ "$(wc -l <"$HOME/runs")" = 1 ] || until [ -e "$HOME/go" ]; do sleep 0.05; done
wc -l <"$HOME/runs"
END
  chmod +x "$HOME/waits"
  cached() { belay cache k --verbose --ttl 1s --stale 1h -- "$HOME/waits" 2>>"$HOME/said"; }
  refreshes() { grep -c "the command runs again in the background" "$HOME/said"; }
  is "$(cached)" 1
  sleep 1.2
  is "$(cached)" 1
  is "$(refreshes)" 1
  wait_until has_run 2
  for i in {1..10}; do
    is "$(cached)" 1
  done
  is "$(refreshes)" 1
  touch "$HOME/go"
  wait_until eval '[ "$(cached)" = 2 ]'
}

@test "--stale, a command that fails: the old output, and another run later" {
  cat_counts
  cached() { belay cache k --ttl 300ms --stale 1h "$@"; }
  is "$(cached -- "$HOME/counts")" 1
  sleep 0.5
  failing=(sh -c 'echo >>"$HOME/failed"; exit 3')
  is "$(cached -- "${failing[@]}")" 1
  wait_until test -e "$HOME/failed"
  sleep 0.5
  is "$(wc -l <"$HOME/failed")" 1
  run -3 cached --refresh -- "${failing[@]}"
  is "$output" ""
  is "$(cached --refresh -- "$HOME/counts")" 2
}

@test "any bytes, much output, no output" {
  head -c 3000000 /dev/urandom >"$HOME/bytes"
  printf '\0\n\xff' >>"$HOME/bytes"
  for i in 1 2; do
    belay cache k -- cat "$HOME/bytes" | cmp - "$HOME/bytes"
  done
  rm "$HOME/bytes"
  belay cache k -- cat "$HOME/bytes" >"$HOME/again"
  is "$(wc -c <"$HOME/again")" 3000003
  is "$(belay cache nothing -- true | wc -c)" 0
  run -0 belay cache nothing -- echo something
  is "$output" ""
}

@test "too much output, or too long a run: ended, and not kept" {
  run -123 --separate-stderr belay cache k --max-size 1000 -- \
    sh -c 'touch "$HOME/began"; head -c 1001 /dev/zero; exec sleep 60'
  is "$stderr" "belay: cache: the command writes more than --max-size allows"
  [ -e "$HOME/began" ]
  run -123 belay cache k --longest 500ms -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
  is "$output" "belay: cache: the command has taken longer than --longest allows, and was ended"
  is "$(belay cache k --max-size 1000 -- head -c 1000 /dev/zero | wc -c)" 1000
}

@test "the command has all of --longest before SIGTERM" {
  cat >"$HOME/left" <<'END'
import os, time
words = open(f"/proc/{os.getppid()}/cmdline", "rb").read().split(b"\0") # of the supervisor
print((int(words[4]) - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // 10**9 > 280)
END
  run -0 belay cache k --longest 5m -- python3 "$HOME/left"
  is "$output" True
}

@test "a background process keeps the output open: 123, not kept" {
  left='sleep 60 2>/dev/null </dev/null & echo $! >"$HOME/left"; echo hi'
  run -123 --separate-stderr belay cache k --longest 500ms -- sh -c "$left" 3>&-
  kill "$(cat "$HOME/left")"
  is "$output" hi
  is "$stderr" "belay: cache: the command has ended,"\
" but a process that it left behind keeps its output open"
  run -130 on_terminal --when begun --type ^C \
    belay cache k -- sh -c "$left; sleep 0.3; echo begun >&2"
  kill "$(cat "$HOME/left")"
  is "$(belay cache k --longest 10s -- sh -c 'sleep 1 & echo all')" all
}

@test "a command that fails: its output and status, and nothing is kept" {
  run -3 --separate-stderr belay cache k -- sh -c 'echo out; echo err >&2; exit 3'
  is "$output" out
  is "$stderr" err
  run -127 belay cache k -- no-such-command
  run -126 belay cache k -- /
  run -137 belay cache k -- sh -c 'kill -KILL $$'
  cat_counts
  is "$(belay cache k -- "$HOME/counts")" 1
}

@test "ten calls at a time: one run, the same output" {
  cat_counts
  sed -i '2i sleep 1' "$HOME/counts"
  for i in {1..10}; do
    start_command belay cache k -- "$HOME/counts" >"$HOME/said$i"
  done
  for pid in "${started[@]:1}"; do
    wait "$pid"
  done
  is "$(cat "$HOME"/said* | sort | uniq -c | xargs)" "10 1"
  is "$(runs)" 1
}

@test "kill -9 of the belay that runs it: another one runs it" {
  cat_counts
  start_command belay cache k -- sh -c 'echo $$ >"$HOME/pid"; exec sleep 60'
  wait_until test -s "$HOME/pid"
  kill -KILL "$begun"
  is "$(belay cache k -- "$HOME/counts")" 1
  is_gone "$(cat "$HOME/pid")"
}

@test "--forget" {
  cat_counts
  is "$(belay cache k -- "$HOME/counts")" 1
  run -0 belay cache k --forget
  is "$(belay cache k -- "$HOME/counts")" 2
}

@test "no server: 120, or --anyway" {
  run -120 belay cache k --url unix:///nonexistent -- touch "$HOME/ran"
  [ ! -e "$HOME/ran" ]
  run -0 belay cache k --url unix:///nonexistent --anyway -- echo there
  is "$output" there
}

@test "a full disk, and invalid options" {
  run -123 bash -c 'belay cache k -- echo hello >/dev/full'
  has "$output" "No space left"
  run -123 bash -c 'belay cache k -- echo hello >/dev/full'
  for line in "" "--forget -- true" "--max-size 0 -- true" "--longest 1h -- true"; do
    run -2 belay cache k $line
  done
}

@test "ctrl-C ends it" {
  run -130 on_terminal --when begun --type ^C belay cache k -- "${waits[@]}"
  is "$(belay cache k -- echo hello)" hello
}
