#!/usr/bin/env bash
# bare.sh [COMMAND]...: prove that the README's commands suffice on a bare Debian 12. In a new
# minimal system, it runs ./run demo and ./run test, installs belay, uses it as the README says, and
# removes it; or it runs the given commands.
#
# debootstrap makes the system from the mirrors that this machine's apt uses. The system has mount
# and process namespaces of its own. Its mounts and processes end with them, so that removing the
# folder afterwards cannot reach anything else.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly suite=bookworm

die() { echo "bare: $*" >&2 && exit 1; }

# sources: the lines of a sources.list for $suite, as this machine's apt is set up.
sources() {
  # shellcheck disable=SC2016
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
    grep -E " $suite(-updates|-security)? main\$" | sort -u
}

# inside ROOT COMMAND...: within the namespaces. Builds the system and runs the commands in it.
inside() {
  local root=$1 mirror command
  shift
  sources >"$root.sources" || die "apt's configuration names no mirror for $suite"
  mirror=$(awk -v suite="$suite" '$3 == suite { print $2; exit }' "$root.sources")

  echo "bare: making a minimal $suite in $root"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" || die "see $root.log"
  cp "$root.sources" "$root/etc/apt/sources.list"
  # Pass on the proxies that this machine may need for its mirrors.
  apt-config dump | grep -E '^Acquire::(http|https|ftp|Check|ForceIPv|Retries)' \
    >"$root/etc/apt/apt.conf.d/99host" || true
  cp /etc/resolv.conf /etc/hosts "$root/etc/"

  # The files of git, and new files that are not ignored: those of a clone.
  mkdir "$root/belay"
  git ls-files -z --cached --others --exclude-standard |
    tar --null --files-from=- --ignore-failed-read -cf - | tar -xf - -C "$root/belay"

  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  for command; do
    echo "bare: $command"
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      HOME=/root LANG=C.UTF-8 \
      chroot "$root" sh -c "cd /belay && $command" </dev/null || die "failed: $command"
  done
  echo "bare: all well"
}

if [ "${1:-}" = --inside ]; then
  shift
  inside "$@"
  exit
fi

[ "$(id -u)" = 0 ] || die "only root can do this"
[ $# != 0 ] ||
  set -- './run demo' './run test' './run install' 'tools/check_installed.sh' './run uninstall'
if ! command -v debootstrap >/dev/null; then
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends debootstrap >/dev/null
fi

temp=$(mktemp -d)
trap 'rm -rf --one-file-system "$temp"' EXIT
mkdir "$temp/root"
unshare --mount --pid --fork --kill-child --mount-proc "$0" --inside "$temp/root" "$@"
