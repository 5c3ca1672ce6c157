#!/bin/sh
# on_valkey.sh PROGRAM [ARGUMENT]...: run a test on Valkey instead of Redis: the installed Valkey,
# or the one that tools/setup.sh fetched. Without either, it exits with 77: skipped.
fetched=$(dirname "$0")/../subprojects/packagecache/valkey-server
for server in valkey-server valkey-check-rdb "$fetched"; do
  if command -v "$server" >/dev/null; then
    BELAY_TEST_SERVER=$server exec "$@"
  fi
done
echo "skipped: no Valkey here"
exit 77
