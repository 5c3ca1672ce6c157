#!/bin/sh
# with_server.sh COMMAND...: start a private server, run COMMAND with its URL as the last argument,
# and stop the server.
set -eu

temp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$temp"' EXIT

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
"$@" "unix://$temp/socket"
