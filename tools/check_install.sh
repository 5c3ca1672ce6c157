#!/bin/sh
# check_install.sh BUILD CC...: installs the build into a folder of its own, and has a program find
# belay there through pkg-config, include it, link to it and run: once shared, once static.
set -eu

build=$1
shift
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

DESTDIR=$temp meson install -C "$build" --no-rebuild --quiet
pc=$(find "$temp" -name belay.pc)
lib=$(dirname "$(dirname "$pc")")
sed -i "s|^prefix=|prefix=$temp|" "$pc"
PKG_CONFIG_PATH=$(dirname "$pc") LD_LIBRARY_PATH=$lib
export PKG_CONFIG_PATH LD_LIBRARY_PATH

cat >"$temp/program.c" <<'END'
#include <belay.h>
#include <stdio.h>

int main(void) {
  return puts(belay_strerror(BELAY_EINVAL)) < 0;
}
END

# The flags are words of their own.
# shellcheck disable=SC2046
{
  if [ -e "$lib/libbelay.so" ]; then
    "$@" -o "$temp/shared" "$temp/program.c" $(pkg-config --cflags --libs belay)
    "$temp/shared"
  fi
  rm -f "$lib"/libbelay.so*
  if [ -e "$lib/libbelay.a" ]; then
    "$@" -o "$temp/static" "$temp/program.c" $(pkg-config --static --cflags --libs belay)
    "$temp/static"
  fi
}
