#!/bin/sh
# check_readme.sh README [CC...]: compile the program in the README by the README's own line,
# against the belay that pkg-config finds, with CC instead of cc. The program must have fewer than
# 40 lines, and acquire and release a lock on a server that this script starts.
set -eu

readme=$1
shift
temp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$temp"' EXIT

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme" >"$temp/program.c"
lines=$(wc -l <"$temp/program.c")
[ "$lines" -gt 10 ] && [ "$lines" -lt 40 ] || { echo "the program has $lines lines"; exit 1; }

line=$(grep -o 'cc program\.c [^`]*' "$readme" | head -n 1)
[ -n "$line" ] || { echo "the README does not say how to compile the program"; exit 1; }
[ $# != 0 ] || set -- cc
(cd "$temp" && eval "$* -Wall -Wextra -Werror ${line#cc }")

# In Debian's redis-tools, redis-check-rdb is the server under another name.
found=$(command -v redis-server || command -v valkey-server || command -v redis-check-rdb)
ln -s "$found" "$temp/redis-server"
"$temp/redis-server" --port 0 --unixsocket "$temp/socket" --save '' --dir "$temp" >"$temp/log" &
server=$!
tries=0
while [ ! -S "$temp/socket" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || { cat "$temp/log"; exit 1; }
  sleep 0.1
done

"$temp/a.out" "unix://$temp/socket" >"$temp/output"
cat "$temp/output"
grep -q '^acquired: success' "$temp/output"
grep -q '^released: success' "$temp/output"
