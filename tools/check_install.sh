#!/bin/sh
# check_install.sh BUILD README CC...: install the build into a temporary folder, and check that
# programs find belay there by pkg-config and CMake, include it, link to it and run. The program in
# the README is compiled by the README's own line. A Meson project finds belay's source by its wrap
# file.
set -eu

build=$1 readme=$2
source=$(dirname "$readme")
shift 2
for program in pkg-config cmake meson; do
  command -v "$program" >/dev/null ||
    { echo "this test needs the program $program, which is not installed"; exit 1; }
done
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

DESTDIR=$temp meson install -C "$build" --no-rebuild --quiet
pc=$(find "$temp" -name belay.pc)
lib=$(dirname "$(dirname "$pc")")
prefix=$(dirname "$lib")
sed -i "s|^prefix=|prefix=$temp|" "$pc"
PKG_CONFIG_PATH=$(dirname "$pc") LD_LIBRARY_PATH=$lib
export PKG_CONFIG_PATH LD_LIBRARY_PATH

mkdir "$temp/use"
cat >"$temp/use/program.c" <<'END'
#include <belay.h>
#include <stdio.h>

int main(void) {
  return puts(belay_strerror(BELAY_EINVAL)) < 0;
}
END
cat >"$temp/use/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(use C)
find_package(belay REQUIRED)
add_executable(program program.c)
target_link_libraries(program belay::belay)
END
cat >"$temp/use/meson.build" <<'END'
project('use', 'c')
executable('program', 'program.c', dependencies: dependency('belay', fallback: 'belay'))
END

# The flags are split into words.
# shellcheck disable=SC2046
if [ -e "$lib/libbelay.so" ]; then
  "$@" -o "$temp/shared" "$temp/use/program.c" $(pkg-config --cflags --libs belay)
  "$temp/shared"
  "$source/tools/check_readme.sh" "$readme" "$@"
  cmake -G Ninja -S "$temp/use" -B "$temp/use/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$temp/log" ||
    { cat "$temp/log"; exit 1; }
  cmake --build "$temp/use/cmake" >"$temp/log" 2>&1 || { cat "$temp/log"; exit 1; }
  "$temp/use/cmake/program"
  if sed -i 's/belay REQUIRED/belay 99 REQUIRED/' "$temp/use/CMakeLists.txt" &&
    cmake -G Ninja -S "$temp/use" -B "$temp/use/cmake-99" -DCMAKE_PREFIX_PATH="$prefix" \
      >"$temp/log" 2>&1; then
    echo "CMake found belay 99"
    exit 1
  fi
fi
rm -f "$lib"/libbelay.so*
# shellcheck disable=SC2046
if [ -e "$lib/libbelay.a" ]; then
  "$@" -o "$temp/static" "$temp/use/program.c" $(pkg-config --static --cflags --libs belay)
  "$temp/static"
fi

mkdir "$temp/use/subprojects"
cp "$source/tools/package/belay.wrap" "$temp/use/subprojects/"
ln -s "$(realpath "$source")" "$temp/use/subprojects/belay"
[ ! -d "$source/subprojects/packagecache" ] ||
  ln -s "$(realpath "$source/subprojects/packagecache")" "$temp/use/subprojects/packagecache"
PKG_CONFIG_PATH='' meson setup "$temp/use/meson" "$temp/use" --wrap-mode=forcefallback \
  >"$temp/log" 2>&1 || { cat "$temp/log"; exit 1; }
grep -q 'Dependency belay from subproject belay found: YES' "$temp/log" ||
  grep -q 'Subproject belay finished' "$temp/log" || { cat "$temp/log"; exit 1; }
