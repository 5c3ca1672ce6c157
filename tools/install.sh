#!/usr/bin/env bash
# install.sh configure BUILD [--prefix DIR]: set the prefix of BUILD, before it is compiled.
# install.sh install BUILD [--prefix DIR]: install BUILD, and list each file in
# DIR/share/belay/installed-files. install.sh uninstall [--prefix DIR]: removes those files again.
set -euo pipefail

readonly default_prefix=/usr/local

die() { echo "$*" >&2 && exit 2; }

# as_owner COMMAND...: run it as root if DIR belongs to root.
as_owner() {
  local existing=$prefix
  until [ -e "$existing" ]; do existing=$(dirname "$existing"); done
  if [ -w "$existing" ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "$prefix is not writable, and there is no sudo: run this as root, or name another --prefix"
  fi
}

# The loader's cache has only system folders, and may not be writable in a container.
refresh_loader() {
  case $prefix in
    /usr | /usr/local) as_owner ldconfig 2>/dev/null || true ;;
  esac
}

list_files() {
  meson introspect "$1" --installed |
    python3 -c 'import json, sys; print("\n".join(sorted(json.load(sys.stdin).values())))'
}

advise() {
  case $prefix in
    /usr | /usr/local) return ;;
  esac
  cat <<END
Programs that are compiled against this prefix need:
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig CMAKE_PREFIX_PATH=$prefix LD_LIBRARY_PATH=$prefix/lib
END
}

configure_build() {
  local find='import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))'
  [ "$(meson introspect "$1" --buildoptions | python3 -c "$find")" = "$prefix" ] ||
    meson configure "$1" -Dprefix="$prefix"
}

install_build() {
  local build=$1 list
  as_owner meson install -C "$build" --no-rebuild --quiet
  list=$(mktemp)
  list_files "$build" >"$list"
  # Remove files of an older version that this version does not have.
  [ ! -f "$manifest" ] || sort "$manifest" | comm -23 - <(sort "$list") |
    while IFS= read -r file; do as_owner rm -f "$file"; done
  as_owner mkdir -p "$(dirname "$manifest")"
  as_owner cp "$list" "$manifest"
  as_owner chmod 644 "$manifest"
  rm "$list"
  refresh_loader
  echo "installed in $prefix: $(wc -l <"$manifest") files"
  advise
}

uninstall_files() {
  local file count
  [ -f "$manifest" ] || die "nothing of ./run install is in $prefix: there is no $manifest"
  count=$(wc -l <"$manifest")
  while IFS= read -r file; do
    as_owner rm -f "$file"
  done <"$manifest"
  as_owner rm -f "$manifest"
  for file in "$prefix"/{share/belay,include/belay,lib/cmake/belay}; do
    [ ! -d "$file" ] || as_owner rmdir --ignore-fail-on-non-empty "$file"
  done
  refresh_loader
  echo "removed from $prefix: $count files"
}

task=$1
shift
build=
if [ "$task" != uninstall ]; then
  build=$1
  shift
fi
prefix=$default_prefix
while [ $# != 0 ]; do
  case $1 in
    --prefix=?*) prefix=${1#*=} ;;
    --prefix) [ -n "${2:-}" ] || die "--prefix names no folder"; prefix=$2 && shift ;;
    *) die "usage: ./run install [--prefix DIR], or ./run uninstall [--prefix DIR]" ;;
  esac
  shift
done
prefix=$(realpath -m "$prefix")
manifest=$prefix/share/belay/installed-files
case $task in
  configure) configure_build "$build" ;;
  install) install_build "$build" ;;
  uninstall) uninstall_files ;;
esac
