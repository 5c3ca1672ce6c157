#!/usr/bin/env python3
"""compare_objects.py OLD [NEW [OPTION...]]: compares object files of two commits, by source folder.

NEW is HEAD by default. OPTION: an option of `meson setup`; with -Dtests=disabled, the objects of
the library and the command only, which takes a fifth of the time.

A commit that changes only comments changes no object file. Both builds leave out debug
information and define __LINE__ as 0, because the number of comment lines may differ. The exit
status is 1 if an object file differs or exists in one commit only.
"""

import collections
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTIONS = [
    "-Dtests=enabled",
    "-Ddebug=false",
    "-Doptimization=1",
    "-Dc_args=-g0 -D__LINE__=0 -Wno-builtin-macro-redefined",
]


def run(*command, cwd=ROOT, **env):
    result = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **env}
    )
    if result.returncode != 0:
        words = " ".join(map(str, command[:4]))
        sys.exit(f"{words}: failed\n{result.stdout[-4000:]}{result.stderr}")
    return result.stdout


def objects_of(commit, tree, options):
    """The hash of each object file of a commit, by (source file, object file)."""
    run("git", "worktree", "add", "--quiet", "--detach", tree, commit)
    try:
        # Both commits use the sources that setup.sh fetched.
        hiredis = ROOT.glob("subprojects/hiredis-*/")
        for fetched in [ROOT / "subprojects" / "packagecache", *hiredis]:
            if fetched.is_dir():
                shutil.copytree(fetched, tree / "subprojects" / fetched.name, dirs_exist_ok=True)
        build = tree / "build"
        run("meson", "setup", build, *OPTIONS, *options, cwd=tree)
        rows = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
        # Without a repository, bench/commit.gen.h does not name the commit.
        run("ninja", "-C", build, *[row["output"] for row in rows], GIT_DIR=os.devnull)
        return {
            (os.path.relpath(build / row["file"], tree), row["output"]): hashlib.sha256(
                (build / row["output"]).read_bytes()
            ).hexdigest()
            for row in rows
        }
    finally:
        run("git", "worktree", "remove", "--force", tree)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.splitlines()[0])
    commits, options = (sys.argv[1:3] + ["HEAD"])[:2], sys.argv[3:]
    with tempfile.TemporaryDirectory() as scratch:
        # One path for both builds, because an object file can contain the path of its source.
        tree = pathlib.Path(scratch) / "tree"
        old, new = (objects_of(commit, tree, options) for commit in commits)
    equal, different = collections.Counter(), collections.defaultdict(list)
    for source, name in sorted(old.keys() | new.keys()):
        folder = os.path.dirname(source)
        if old.get((source, name)) == new.get((source, name)):
            equal[folder] += 1
        else:
            different[folder].append(source)
    for folder in sorted(equal.keys() | different.keys()):
        names = ", ".join(different[folder])
        print(f"{folder}: {equal[folder]} equal, {len(different[folder])} different", end="")
        print(f": {names}" if names else "")
    sys.exit(1 if any(different.values()) else 0)


main()
