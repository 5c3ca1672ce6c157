#!/bin/sh
# Runs a test on Valkey instead of Redis: on_valkey.sh PROGRAM [ARGUMENT]... The test's servers are the Valkey that is
# installed, or else the one that tools/setup.sh has fetched; where there is neither it exits with 77: skipped.
fetched=$(dirname "$0")/../subprojects/packagecache/valkey-server
for server in valkey-server valkey-check-rdb "$fetched"; do
  if command -v "$server" >/dev/null; then
    BELAY_TEST_SERVER=$server exec "$@"
  fi
done
echo "skipped: no Valkey here"
exit 77
