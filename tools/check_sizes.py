#!/usr/bin/env python3
"""check_sizes.py: fails if a line, a function, a file or a folder is too long.

It also fails if a trailing comment made the layout break a declaration before its name.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE_MAX, FUNCTION_MAX, FILE_MAX, FOLDER_MAX = 100, 60, 500, 30  # columns, lines, lines, files
LISTS = {"include/belay", "test/sim/mutants"}  # one file per subject: they grow with the subjects
TABLES = {"next_state("}  # transition tables may be longer: each line has a state and an event
SUFFIXES = (".c", ".h", ".lua", ".py", ".sh", ".bats", ".bash", ".build")
# A declaration in column 0 whose braces do not begin a function.
NO_FUNCTION = re.compile(r"^(typedef|struct|enum|union|extern)\b(?!.*\()|=\s*\{$")
# A type alone in its line; then the name, with a comment behind it.
BROKEN = re.compile(r"^ +[A-Za-z_][\w *]*\n +\**\w[\w\[\], *]*; */\*", re.M)


def functions(lines):
    """(first line, number of lines) of each function, from its type to its last brace."""
    start, opened = None, False
    for number, line in enumerate(lines, 1):
        if start is None and re.match(r"\w", line) and not NO_FUNCTION.search(line):
            start, opened = number, False
        if start is None:
            continue
        if not opened and line.endswith((";", ":")):
            start = None
        elif opened and line.startswith("}"):
            yield start, number - start + 1
            start = None
        opened = opened or line.endswith("{")


def main():
    listed = subprocess.check_output(["git", "-C", ROOT, "ls-files", "-z"], text=True)
    files = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    code = [name for name in files if name.endswith(SUFFIXES) or name == "run"]
    if len(code) < 500:
        sys.exit(f"only {len(code)} files: the tree is not where it was")
    found = []
    for name in code:
        text = (ROOT / name).read_text(encoding="utf-8")
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX:
                found.append(f"{name}:{number}: {len(line)} columns; at most {LINE_MAX}")
        for broken in BROKEN.finditer(text) if name.endswith((".c", ".h")) else ():
            number = text.count("\n", 0, broken.start()) + 1
            found.append(f"{name}:{number}: put the comment above the declaration")
        if len(lines) > FILE_MAX:
            found.append(f"{name}: {len(lines)} lines; at most {FILE_MAX}")
        if name.endswith(".c"):
            for first, length in functions(lines):
                table = any(name in lines[first - 1] for name in TABLES)
                if length > FUNCTION_MAX and not table:
                    message = f"a function of {length} lines; at most {FUNCTION_MAX}"
                    found.append(f"{name}:{first}: {message}")
    folders = collections.Counter(str(pathlib.Path(name).parent) for name in files)
    for folder, number in folders.items():
        if number > FOLDER_MAX and folder not in LISTS:
            found.append(f"{folder}: {number} files; at most {FOLDER_MAX}")
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
