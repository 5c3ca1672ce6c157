#!/usr/bin/env python3
"""Apply a mutant to a source file: mutate.py NAME.mutant OUT.c SOURCE.c
                                    mutate.py NAME.mutant OUT.c SCRIPT.lua...

A mutant is the library with one of its rules removed; a checker of test/sim must fail. Its file has
the rule and its reason, then the scenario that finds it, then the change, as a patch without line
numbers:

    # The removed rule.
    scenario: plain
    seeds: 40
    caught by: exclusion

    file: src/lease/machine/deadline.c
    @@
     a line that stays
    -a line that goes
    +a line that comes
    @@ ...

The old text of an edit must occur exactly once, or this fails; so a change of the code must change
its mutants too. All scripts, and the files that they include, are changed and embedded together, as
tools/embed_lua.py does.
"""

import pathlib
import subprocess
import sys
import tempfile

INCLUDES = pathlib.Path(__file__).resolve().parent.parent / "src" / "lua" / "include"
FIELDS = ("scenario", "seeds", "seed", "caught by")  # seeds or seed: test/sim/mutants/meson.build


class Mutant:
    """The fields, and for each file its edits: pairs of the old text and the new."""

    def __init__(self, path):
        self.path, self.fields, self.files = path, {}, {}
        edits = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            word, _, value = line.partition(": ")
            if line == "@@" and edits is not None:
                edits.append(["", ""])
            elif word == "file":
                edits = self.files.setdefault(value, [])
            elif edits and line[:1] in (" ", "-", "+"):
                for side, other in enumerate("+-"):
                    if line[0] != other:
                        edits[-1][side] += line[1:] + "\n"
            elif edits is None and word in FIELDS:
                self.fields[word] = value
            elif line and not (edits is None and line.startswith("#")):
                sys.exit(f"{path}:{number}: not understood")
        if len(self.fields) != len(FIELDS) - 1 or not all(self.files.values()):
            sys.exit(f"{path}: it lacks {', '.join(FIELDS)}, or an edit")

    def edits_of(self, source):
        for name, edits in self.files.items():
            if source.resolve().as_posix().endswith("/" + name):
                return edits
        return []

    def apply(self, source):
        text = "\n" + source.read_text(encoding="utf-8")
        for old, new in self.edits_of(source):
            times = text.count("\n" + old) if old else 0
            if times != 1 or old == new:
                sys.exit(f"{self.path}: {times} times in {source}, and not once:\n{old}")
            text = text.replace("\n" + old, "\n" + new)
        return text[1:]


def main(mutant, out, *sources):
    mutant, out = Mutant(pathlib.Path(mutant)), pathlib.Path(out)
    sources = [pathlib.Path(source) for source in sources]
    if sources[0].suffix == ".lua":
        sources += INCLUDES.glob("*.lua")
    if not any(mutant.edits_of(source) for source in sources):
        sys.exit(f"{mutant.path}: nothing to do in {sources[0]}")
    if sources[0].suffix != ".lua":
        out.write_text(mutant.apply(sources[0]), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as temp:
        include, scripts = pathlib.Path(temp, INCLUDES.name), []
        for source in sources:
            changed = pathlib.Path(temp, source.parent.name, source.name)
            changed.parent.mkdir(exist_ok=True)
            changed.write_text(mutant.apply(source), encoding="utf-8")
            scripts += [changed] if changed.parent != include else []
        embed = pathlib.Path(__file__).with_name("embed_lua.py")
        header = pathlib.Path(temp, "scripts.gen.h")
        command = [sys.executable, embed, "--include", include, header, out, *scripts]
        subprocess.run(command, check=True)


main(*sys.argv[1:])
