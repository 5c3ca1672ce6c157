#!/usr/bin/env python3
"""Turns src/lua/*.lua into C: embed_lua.py OUT.h OUT.c NAME.lua...

Each script becomes a belay__script_t named belay__script_NAME: its text, and the SHA1 by which
EVALSHA calls it. The comment at the top of a script is for its readers; it is not sent.
"""

import hashlib
import pathlib
import re
import sys


def body(path):
    """The script without its leading comment and blank lines."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    start = 0
    while start < len(lines):
        line = lines[start].strip()
        if line.startswith("--[") or line.startswith("#!"):
            # A block comment may end amid code, and a shebang must stay the first line.
            sys.exit(f"{path}: a script starts with plain -- lines")
        if line and not line.startswith("--"):
            break
        start += 1
    text = "".join(lines[start:])
    if not text:
        sys.exit(f"{path}: no script after the comment")
    return text


def literal(text):
    """The text as C string literals, one for each line."""
    quoted = []
    for line in text.encode("utf-8").splitlines(keepends=True):
        chars = []
        for byte in line:
            char = chr(byte)
            if char in '"\\?':  # '?' because of trigraphs, which c11 has
                chars.append("\\" + char)
            elif 0x20 <= byte < 0x7F:
                chars.append(char)
            else:  # always three digits, so that a digit after it is not taken for a part of it
                chars.append("\\n" if char == "\n" else f"\\{byte:03o}")
        quoted.append('    "' + "".join(chars) + '"')
    return "\n".join(quoted)


def main(header, source, *scripts):
    declarations, definitions, addresses = [], [], []
    for path in sorted(map(pathlib.Path, scripts)):
        name = path.stem
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            sys.exit(f"{path}: a script's name is part of a C name")
        text = body(path)
        data = text.encode("utf-8")
        declarations.append(f"extern const belay__script_t belay__script_{name};")
        addresses.append(f"    &belay__script_{name},")
        definitions.append(
            f"const belay__script_t belay__script_{name} = {{\n"
            f'    "{name}",\n'
            f'    "{hashlib.sha1(data).hexdigest()}",\n'
            f"{literal(text)},\n"
            f"    {len(data)},\n"
            f"    {len(definitions)},\n"
            f"}};\n"
        )

    pathlib.Path(header).write_text(
        "/* Made from src/lua by tools/embed_lua.py. */\n"
        "#ifndef BELAY_SCRIPTS_GEN_H\n"
        "#define BELAY_SCRIPTS_GEN_H\n\n"
        '#include "core/script.h"\n\n' + "\n".join(declarations) + "\n\n"
        "/* All of them, by their index. */\n"
        f"#define BELAY__SCRIPTS {len(addresses)}\n"
        "extern const belay__script_t *const belay__scripts[BELAY__SCRIPTS];\n\n"
        "#endif\n"
    )
    pathlib.Path(source).write_text(
        "/* Made from src/lua by tools/embed_lua.py. */\n"
        '#include "scripts.gen.h"\n\n'
        "/* ISO C promises 4095 characters in a literal; every compiler takes more. */\n"
        '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n' + "\n".join(definitions) + "\n"
        "_Static_assert(BELAY__SCRIPTS <= BELAY__SCRIPTS_MAX, \"a client has a bit for each\");\n\n"
        "const belay__script_t *const belay__scripts[BELAY__SCRIPTS] = {\n"
        + "\n".join(addresses) + "\n};\n"
    )


main(*sys.argv[1:])
