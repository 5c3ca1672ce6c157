#!/bin/sh
# check_private.sh BUILD: check, by the compiler's lists of read files, that the command includes
# only include/ and its own files.
set -eu

read=$(ninja -C "$1" -t deps | awk '
  /^[^ ]/ { ours = $1 ~ /belay_command|^belay(-demo)?\.p/ }
  ours && /^ / { print $1 }' | sort -u)
echo "$read" | grep -q 'include/belay/client\.h$' || {
  echo "the compiler's notes are not there"
  exit 1
}
if echo "$read" | grep -E '(^|/)(src|test|bench)/|adapters/(uv|redis)/'; then
  echo "adapters/cli reads these, which are private"
  exit 1
fi
