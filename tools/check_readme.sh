#!/bin/sh
# check_readme.sh README [CC...]: compile the program in the README by the README's own line,
# against the belay that pkg-config finds, with CC instead of cc. The program must have fewer than
# 40 lines, and acquire and release a lock on a server that this script starts.
set -eu

readme=$1
shift
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$readme" >"$temp/program.c"
lines=$(wc -l <"$temp/program.c")
[ "$lines" -gt 10 ] && [ "$lines" -lt 40 ] || { echo "the program has $lines lines"; exit 1; }

line=$(grep -o 'cc program\.c [^`]*' "$readme" | head -n 1)
[ -n "$line" ] || { echo "the README does not say how to compile the program"; exit 1; }
[ $# != 0 ] || set -- cc
(cd "$temp" && eval "$* -Wall -Wextra -Werror ${line#cc }")

"$(dirname "$0")/with_server.sh" "$temp/a.out" >"$temp/output"
cat "$temp/output"
grep -q '^acquired: success' "$temp/output"
grep -q '^released: success' "$temp/output"
