#!/usr/bin/env bash
# run.sh BUILD FILE.bats: install the build into a temporary folder, and run the tests with the
# installed belay.
set -euo pipefail

build=$1 file=$2
place=$(mktemp -d /tmp/belay-cli-XXXXXX)
trap 'rm -rf "$place"' EXIT
DESTDIR=$place meson install -C "$build" --no-rebuild --quiet --tags runtime >/dev/null

belay=$(find "$place" -name belay -path '*/bin/*')
library=$(find "$place" -name 'libbelay.so.*' -print -quit)
export PATH=${belay%/*}:$PATH CLI_PLACE=$place CLI_HOLDER=$build/test/cli/holder
[ -z "$library" ] || export LD_LIBRARY_PATH=${library%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
bats --tap "$file"
