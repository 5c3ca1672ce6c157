#!/bin/sh
# check_installed.sh: check that the shell, man, pkg-config, the loader and the README's compiler
# line find the belay that ./run install put into /usr/local, without any variable.
set -eux

belay --version
man -w belay
man -w 3 belay_lock_acquire
man -w 7 belay-outcomes
ldconfig -p | grep libbelay
pkg-config --cflags --libs belay
"$(dirname "$0")"/check_readme.sh "$(dirname "$0")"/../README.md
