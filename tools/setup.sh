#!/usr/bin/env bash
# Install the requirements of belay: setup.sh build|test|check|valgrind (each but the last includes
# those before it), or bench or package (which include the first). It looks for the things
# themselves and keeps no record, so it does nothing if all are present, and restores those that
# were removed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

say() { echo "setup: $*" >&2; }
wrap() { sed -n "s/^$1 = //p" subprojects/hiredis.wrap; }

hiredis_hash=$(wrap source_hash)
hiredis_tarball=subprojects/packagecache/$(wrap source_filename)
valkey=subprojects/packagecache/valkey-server # for the tests alone: nothing is installed
peers=bench/peers/node                         # only for the benchmarks

# ---- requirements: a Debian package, and a check for it or its equivalent ----

need() { # need PACKAGE TEST...
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

have() { command -v "$1"; }
have_c_headers() { echo '#include <stdio.h>' | cc -E -; }
have_library() { pkg-config --exists "$1"; }
have_lua() { have_library lua5.1 || have_library lua-5.1; }
# Any of them is a server: redis-check-rdb is the same program under another name, which lets the
# tests have a server without a package that would start one for the whole system.
have_server() { have redis-server || have valkey-server || have redis-check-rdb; }
have_procps() { have ps && have pgrep; }
have_python_redis() {
  local find='import importlib.util as u, sys; sys.exit(not u.find_spec("redis"))'
  /usr/bin/python3 -c "$find" || python3 -c "$find"
}
have_hiredis() {
  have_library 'hiredis >= 1.2' || echo "$hiredis_hash  $hiredis_tarball" | sha256sum --check
}

have_valkey() { have valkey-server || have valkey-check-rdb || "$valkey" --version; }

have_peers() { (cd "$peers" && npm ls --silent); }

look() { # look build|test|check|valgrind|bench|package: fills `missing`
  missing=()
  need gcc have cc
  need libc6-dev have_c_headers
  need meson have meson
  need ninja-build have ninja
  need pkg-config have pkg-config
  need libuv1-dev have_library 'libuv >= 1.43'
  need liblz4-dev have_library 'liblz4 >= 1.9'
  need libxxhash-dev have_library 'libxxhash >= 0.8'
  need libssl-dev have_library 'openssl >= 1.1.1'
  need hiredis have_hiredis
  need redis-tools have_server
  [ "$1" != build ] || return 0
  if [ "$1" = package ]; then
    need dpkg-dev have dpkg-buildpackage
    need debhelper have dh
    need lintian have lintian
    need git have git
    return 0
  fi
  if [ "$1" = bench ]; then
    need python3-redis have_python_redis
    need nodejs have node
    need npm have npm
    need peers have_peers
    return 0
  fi

  need libcmocka-dev have_library cmocka
  need zsh have zsh
  need fish have fish
  need liblua5.1-0-dev have_lua
  need python3-redis have_python_redis
  need strace have strace
  need procps have_procps
  need openssl have openssl
  need cmake have cmake
  need bats have bats
  need redis-tools have redis-cli
  need man-db have man
  need groff-base have groff
  need valkey have_valkey
  [ "$1" != valgrind ] || need valgrind have valgrind
  [ "$1" = check ] || return 0

  need g++ have c++
  need git have git
  need clang have clang
  need clang-format have clang-format
  need clang-tidy have clang-tidy
  need doxygen have doxygen
}

# ---- installation ----

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo >/dev/null; then
    sudo "$@"
  else
    say "please run this as root, or install: ${missing[*]}"
    exit 1
  fi
}

# The version of a package that apt would install.
candidate() { apt-cache show --no-all-versions "$1" 2>/dev/null | sed -n 's/^Version: //p'; }

# quietly COMMAND...: show the output of the command only if it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  [ "$status" = 0 ] || cat "$log" >&2
  rm "$log"
  return "$status"
}

install_packages() {
  local packages=() package
  # Downloads need neither root nor the system's package lists. A failed update of the lists may
  # concern an unrelated repository, so go on.
  [ -z "$(required)" ] || as_root apt-get -qq update || say "apt-get update had trouble"
  for package in "${missing[@]}"; do
    case $package in
      hiredis)
        if dpkg --compare-versions "$(candidate libhiredis-dev)" ge 1.2; then
          packages+=(libhiredis-dev)
        else
          fetch_hiredis ||
            say "no luck with apt: Meson will try ${hiredis_tarball##*/} from its home"
        fi
        ;;
      valkey | peers) ;; # last, because it needs what a server needs, or npm
      *) packages+=("$package") ;;
    esac
  done
  if [ ${#packages[@]} != 0 ]; then
    say "installing ${packages[*]}"
    quietly as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get -qq install -y --no-install-recommends "${packages[@]}"
  fi
  [[ " ${missing[*]} " != *" valkey "* ]] || fetch_valkey ||
    say "no luck with apt: the tests will skip what is to run on Valkey"
  [[ " ${missing[*]} " != *" peers "* ]] || (cd "$peers" && npm ci --silent) ||
    say "no luck with npm: the benchmarks will skip what runs on Node.js"
}

# The missing requirements. hiredis and Valkey are optional: Meson can download hiredis, and tests
# that need Valkey are skipped without it.
required() {
  local package
  for package in "${missing[@]}"; do
    case $package in
      hiredis | valkey | peers | nodejs | npm) ;;
      *) echo "$package" ;;
    esac
  done
}

# apart LINE COMMAND...: run the command in an empty folder, where `apt_get` is apt with package
# lists of its own, of the one source in LINE. MIRROR in LINE is this machine's mirror. The rest of
# the system does not change.
apart() {
  local mirror temp status=0
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Identifier: Packages' |
    awk -v name="$VERSION_CODENAME" '$1 == name || $1 ~ /^(old)?stable$/ { print $2; exit }')
  if [ -z "$mirror" ]; then
    say "apt's configuration names no mirror for $VERSION_CODENAME"
    return 1
  fi
  temp=$(mktemp -d)
  echo "${1/MIRROR/$mirror}" >"$temp/sources.list"
  mkdir -p "$temp/lists/partial" "$temp/cache/archives/partial"
  private=(-qq -o Dir::State::Lists="$temp/lists" -o Dir::Cache="$temp/cache"
    -o Dir::Etc::SourceList="$temp/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o APT::Sandbox::User=root -o Acquire::Retries=0 -o Acquire::http::Timeout=20)
  shift
  (cd "$temp" && apt_get update && "$@") || status=$?
  rm -rf "$temp"
  return "$status"
}

apt_get() { apt-get "${private[@]}" "$@" >/dev/null; }

# keep FILE PLACE: move a file of the empty folder to its place.
keep() { mkdir -p "$root/${2%/*}" && mv "$1" "$root/$2"; }

# The distribution's next release has hiredis 1.2: its source package holds the tarball that
# subprojects/hiredis.wrap names. The hash in that file is stronger than a signature.
fetch_hiredis() {
  local suite component
  case $ID in
    ubuntu) suite=noble component=universe ;;
    *) suite=trixie component=main ;;
  esac
  say "fetching the source of hiredis from $suite"
  apart "deb-src [trusted=yes] MIRROR $suite $component" unpack_hiredis
}

unpack_hiredis() {
  apt_get source --download-only hiredis &&
    echo "$hiredis_hash  $(echo hiredis_*.orig.tar.gz)" | sha256sum --check --quiet &&
    keep hiredis_*.orig.tar.gz "$hiredis_tarball"
}

# The distribution's backports have signed packages of Valkey 8. One of its tools is the server
# under another name. It is extracted, not installed, so that no system service starts.
fetch_valkey() {
  say "fetching Valkey from $VERSION_CODENAME-backports"
  apart "deb MIRROR $VERSION_CODENAME-backports main" unpack_valkey
}

unpack_valkey() {
  apt_get download valkey-tools &&
    dpkg-deb --fsys-tarfile valkey-tools_*.deb |
    tar -xO ./usr/bin/valkey-check-rdb >valkey-server &&
    chmod +x valkey-server && ./valkey-server --version >/dev/null &&
    keep valkey-server "$valkey"
}

# ---- main ----

look "${1:-check}"
[ ${#missing[@]} != 0 ] || exit 0

if have apt-get >/dev/null; then
  # shellcheck disable=SC1091
  . /etc/os-release # sets ID and VERSION_CODENAME
  install_packages
  look "${1:-check}"
fi
if [ -n "$(required)" ]; then
  # shellcheck disable=SC2046
  say "still missing (as Debian names it, and libuv from 1.43 on):" $(required)
  exit 1
fi
