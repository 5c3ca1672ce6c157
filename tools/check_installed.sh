#!/bin/sh
# check_installed.sh: the belay that ./run install has put into /usr/local is found without a variable set: by the shell, by
# man, by pkg-config, by the loader, and by the line of the README that compiles its program.
set -eux

belay --version
man -w belay
ldconfig -p | grep libbelay
pkg-config --cflags --libs belay
"$(dirname "$0")"/check_readme.sh "$(dirname "$0")"/../README.md
