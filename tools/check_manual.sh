#!/bin/sh
# check_manual.sh FOLDER LIB.so: check that each exported function has a manual page in the folder,
# and that groff shows all pages without a warning.
set -eu

folder=$1 library=$2
command -v groff >/dev/null ||
  { echo "this test needs the program groff, which is not installed"; exit 1; }
functions=$(nm -D --defined-only "$library" | awk '$2 == "T" { print $3 }')
[ -n "$functions" ]
for function in $functions; do
  [ -s "$folder/$function.3" ] || { echo "$function has no page"; exit 1; }
done
# groff itself must succeed; long lines of examples and URLs are no fault.
output=$(groff -t -man -Tutf8 -z -wchar -wmac -wreg -wescape -wfont -wmissing \
  "$folder"/*.[37] 2>&1) || { echo "$output"; exit 1; }
warnings=$(printf '%s' "$output" | sed "/can't break line/d")
[ -z "$warnings" ] || { echo "$warnings"; exit 1; }
