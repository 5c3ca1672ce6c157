#!/usr/bin/env python3
"""check_sizes.py: fails if a function, a file or a folder is too long to be read at once."""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUNCTION_MAX, FILE_MAX, FOLDER_MAX = 60, 500, 30  # lines, lines, files
LISTS = {"include/belay", "test/sim/mutants"}  # one file per subject: they grow with the subjects
TABLES = {"next_state("}  # transition tables, which may be longer: a state and an event in each line
# A declaration in column 0 whose braces are no function's.
NO_FUNCTION = re.compile(r"^(typedef|struct|enum|union|extern)\b(?!.*\()|=\s*\{$")


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
    code = [name for name in files if name.endswith((".c", ".h", ".lua", ".py"))]
    if len(code) < 500:
        sys.exit(f"only {len(code)} files: the tree is not where it was")
    found = []
    for name in code:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        if len(lines) > FILE_MAX:
            found.append(f"{name}: {len(lines)} lines; at most {FILE_MAX}")
        if name.endswith(".c"):
            for first, length in functions(lines):
                table = any(name in lines[first - 1] for name in TABLES)
                if length > FUNCTION_MAX and not table:
                    found.append(f"{name}:{first}: a function of {length} lines; at most {FUNCTION_MAX}")
    for folder, number in collections.Counter(str(pathlib.Path(name).parent) for name in files).items():
        if number > FOLDER_MAX and folder not in LISTS:
            found.append(f"{folder}: {number} files; at most {FOLDER_MAX}")
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
