#!/usr/bin/env python3
"""Turn a text into a C array of its lines: embed_text.py IN OUT.h NAME"""

import pathlib
import sys

source, out, name = sys.argv[1:]
lines = pathlib.Path(source).read_text(encoding="utf-8").splitlines()
quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
text = "".join(f'    "{line}",\n' for line in quoted)
pathlib.Path(out).write_text(f"static const char *const {name}[] = {{\n{text}}};\n", encoding="utf-8")
