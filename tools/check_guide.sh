#!/bin/sh
# check_guide.sh FILE.md CC...: compile the program of a guide, its first block of C, by CC and its
# flags, and run it against a private server. It must print the guide's first block of text.
set -eu

guide=$1
shift
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# block KIND: print the first block of the guide that begins with ```KIND.
block() {
  awk -v start="\`\`\`$1" '
    inside && /^```$/ { exit }
    inside
    $0 == start { inside = 1 }' "$guide"
}

block c >"$temp/program.c"
block text >"$temp/expected"
[ -s "$temp/program.c" ] && [ -s "$temp/expected" ] ||
  { echo "$guide: it has no program, or not its output"; exit 1; }
# The flags are split into words.
# shellcheck disable=SC2046
"$@" -Wall -Wextra -Werror "$temp/program.c" -o "$temp/program" $(pkg-config --cflags --libs libuv)
"$(dirname "$0")/with_server.sh" "$temp/program" >"$temp/output"
diff "$temp/expected" "$temp/output"
