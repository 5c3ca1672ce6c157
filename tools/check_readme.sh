#!/bin/sh
# check_readme.sh README INCLUDES LIBRARY CC...: the program in the README is under 40 lines, compiles as it
# stands, and takes and gives back a lock on a server that this script starts.
set -eu

readme=$1 includes=$2 library=$3
shift 3
temp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$temp"' EXIT

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme" >"$temp/program.c"
lines=$(wc -l <"$temp/program.c")
[ "$lines" -gt 10 ] && [ "$lines" -lt 40 ] || { echo "the program has $lines lines"; exit 1; }

# The flags are words of their own.
# shellcheck disable=SC2046,SC2086
"$@" -Wall -Wextra -Werror -o "$temp/program" "$temp/program.c" $includes "$library" \
  -Wl,-rpath,"$(dirname "$library")" $(pkg-config --cflags --libs libuv)

# Debian's redis-tools has the server under the name of its checker, which acts by the name it is called.
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

"$temp/program" "unix://$temp/socket" >"$temp/output"
cat "$temp/output"
grep -q '^acquired: success' "$temp/output"
grep -q '^released: success' "$temp/output"
