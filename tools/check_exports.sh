#!/bin/sh
# check_exports.sh LIBRARY: fail if the shared library exports other names than belay_*.
set -eu

names=$(nm -D --defined-only "$1" | awk '{ print $3 }')
if [ -z "$names" ]; then
  echo "nothing is exported: is anything marked BELAY_API?" >&2
  exit 1
fi
if printf '%s\n' "$names" | grep -v '^belay_[a-z]' >&2; then
  echo "the names above are exported, and should be hidden" >&2
  exit 1
fi
