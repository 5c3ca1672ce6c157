#!/usr/bin/env bash
# package.sh: build the Debian packages libbelay0, libbelay-dev and belay into build/packages, and
# check them with lintian. DEBFULLNAME and DEBEMAIL name the packager.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly out=build/packages
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
packager="${DEBFULLNAME:-belay packager} <${DEBEMAIL:-packager@example.com}>"
source=$out/belay-$version

rm -rf "$out"
mkdir -p "$source"
# The files of git, new ones too, and the source of hiredis for a build without a network.
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$source"
[ ! -d subprojects/packagecache ] || cp --parents -t "$source" subprojects/packagecache/hiredis-*
cp -r tools/package/debian "$source/debian"
sed -i "s/@MAINTAINER@/$packager/" "$source/debian/control"
cat >"$source/debian/changelog" <<END
belay ($version) unstable; urgency=medium

  * CHANGELOG.md lists the changes.

 -- $packager  $(date -R)
END
(cd "$source" && dpkg-buildpackage --build=binary --no-sign) >"$out/build.log" 2>&1 ||
  { tail -n 50 "$out/build.log" && exit 1; }
lintian --fail-on error --suppress-tags initial-upload-closes-no-bugs "$out"/*.changes
rm -rf "$source"
ls "$out"/*.deb
