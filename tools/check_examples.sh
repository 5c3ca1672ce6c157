#!/bin/sh
# check_examples.sh INCLUDES HEADER... -- CC...: check that the examples in the headers' comments,
# between @code and @endcode, compile, each as a file that includes belay.h.
set -eu

includes=$1
shift
headers=
while [ "$1" != -- ]; do
  headers="$headers $1"
  shift
done
shift
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

examples=0
for header in $headers; do
  name=$(basename "$header" .h)
  awk -v file="$temp/$name" '
    /@endcode/ { inside = 0 }
    inside { sub(/^ \* ?/, ""); print > out }
    /@code/ { inside = 1; out = file "-" ++n ".body" }' "$header"
  for body in "$temp/$name"-*.body; do
    [ -e "$body" ] || continue
    source=${body%.body}.c
    printf '#include <belay.h>\n#include <stdio.h>\n#include <string.h>\n' >"$source"
    cat "$body" >>"$source"
    # CFLAGS are split into words.
    # shellcheck disable=SC2046,SC2086
    "$@" -Wall -Wextra -Werror -Wno-unused-function -fsyntax-only $includes \
      $(pkg-config --cflags libuv) "$source"
    examples=$((examples + 1))
    echo "$name: $(wc -l <"$body") lines"
  done
done
[ "$examples" -gt 0 ] || { echo "there is no example"; exit 1; }
