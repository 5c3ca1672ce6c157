#!/usr/bin/env python3
"""Turn src/lua/*/*.lua into C: embed_lua.py [--include DIR] OUT.h OUT.c FAMILY/FILE.lua...

Each script becomes a belay__script_t named belay__script_FAMILY_FILE, or belay__script_FAMILY if
the file has the family's name. It has the text without the comment at the top, the SHA1 for
EVALSHA, and the number of first lines that write nothing: an error on one of them means that
nothing was done. For this, each call has a line of its own, and nested code is indented.

Some scripts also become a second script, which runs the first one separately for several calls.
"""

import hashlib
import pathlib
import re
import sys


INCLUDES = pathlib.Path(__file__).resolve().parent.parent / "src" / "lua" / "include"


def included(name):
    """include/NAME.lua without its comments. Its functions raise no errors of their own."""
    lines = (INCLUDES / f"{name}.lua").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() and not line.startswith("--"))


def expand(text):
    """The text with what is included in place of each line "--@include NAME"."""
    return re.sub(r"^--@include (\w+)\n", lambda match: included(match[1]), text, flags=re.M)


def body(path):
    """The script without its leading comment and blank lines, and with what it includes."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    start = 0
    while start < len(lines):
        line = lines[start].strip()
        if line.startswith("--[") or line.startswith("#!"):
            # A block comment may end amid code, and a shebang must stay the first line.
            sys.exit(f"{path}: a script starts with plain -- lines")
        if line.startswith("--@") or line and not line.startswith("--"):
            break
        start += 1
    text = expand("".join(lines[start:]))
    if not text:
        sys.exit(f"{path}: no script after the comment")
    return text


# Commands that write nothing. All others count as writes.
READS = set(
    """BITCOUNT EXISTS GET GETBIT GETRANGE HEXISTS HGET HGETALL HLEN HMGET LLEN LRANGE PTTL PUBSUB
    SCARD SINTER SINTERCARD SISMEMBER SSCAN STRLEN TIME TYPE ZCARD ZCOUNT ZRANGE ZRANGEBYSCORE
    ZRANK ZREVRANGE ZREVRANGEBYSCORE ZREVRANK ZSCORE""".split()
)


def writes(call):
    """Whether redis.call(this, ...) may write. PFCOUNT does: it keeps what it has counted."""
    names = re.findall(r"'([^']*)'", call)
    return not names or not READS.issuperset(names)


def clean_lines(text):
    """The number of lines before the first call that may write; None: there is no such call. A
    function ends them too, because it may be called after a write, unless it is included and calls
    no command; so does a loop around the call. The contention flag of a lock does not count: it is
    a hint, and a release repeats what failed because of it."""
    called = r"p?call\(([^,)]*)"
    flag = r"redis\.pcall\(.*'::contended'"
    text = re.sub(flag, "", text)
    if not any(map(writes, re.findall(called, re.sub(r"--.*", "", text)))):
        return None
    for path in INCLUDES.glob("*.lua"):
        part = re.sub(flag, "", included(path.stem))
        if "call(" not in part:
            text = text.replace(part, "\n" * part.count("\n"))
    loops = []  # open loops: indentation, and number of the line before
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"--.*", "", line)
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        loops = [loop for loop in loops if loop[0] < indent]
        calls = re.findall(called, line)
        if any(map(writes, calls)):
            before = number if len(calls) == 1 else number - 1
            return min([start for _, start in loops] + [before])
        if re.search(r"\bfunction\b", line):
            return min([start for _, start in loops] + [number - 1])
        if re.search(r"\b(for|while|repeat)\b", line):
            loops.append((indent, number - 1))


# Scripts whose calls go in batches: short ones, because a server's overhead per script counts
# there.
TOGETHER = {"limit", "lock_extend", "lock_release"}

# The script as a function with the same line numbers. ARGV[1] is the number of calls, which have
# equal numbers of keys and arguments. If it is negative, the calls have the same arguments, which
# then come only once. Reply: their replies, in order. The reply of a failed call is
# its error with the line; the level of the stack depends on whether a command raised it. A nil
# would end the array.
MANY = """{time}local of_all, rest, KEYS, ARGV = KEYS, ARGV, {{}}, {{}} \
local function one() {text}end
local function raised(e)
  local _, at = pcall(error, '', 3)
  if at == '' then
    _, at = pcall(error, '', 4)
  end
  if type(e) == 'table' then
    return {{err = e.err .. ' script: of several, on @' .. at}}
  end
  return {{err = 'ERR Error running script (of several): @' .. at .. e}}
end
local n, replies = tonumber(rest[1]), {{}}
local lists = n > 0 and n or 1
n = math.abs(n)
local keys, args = #of_all / n, (#rest - 1) / lists
for i = 1, n do
  local key, arg = (i - 1) * keys, (i - 1) * args + 1
  for j = 1, keys do
    KEYS[j] = of_all[key + j]
  end
  for j = 1, i <= lists and args or 0 do
    ARGV[j] = rest[arg + j]
  end
  local good, reply = xpcall(one, raised)
  if not good and type(reply) ~= 'table' then
    reply = {{err = 'ERR Error running script (of several): ' .. tostring(reply)}}
  end
  replies[i] = reply or false
end
return replies
"""


def together(text):
    """The script for several calls. It reads the time once for all of them, on the first line, so
    that an error there is distinct from an error after a write."""
    timeless = re.sub(r"\b(redis\.)?call\('TIME'\)", "TIME", text)
    time = "" if timeless == text else "local TIME = redis.call('TIME') "
    return MANY.format(time=time, text=timeless)


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


def definition(name, text, clean, index, many, linkage):
    """One belay__script_t."""
    data = text.encode("utf-8")
    return (
        f"{linkage} {name} = {{\n"
        f'    "{re.sub("^belay__script_", "", name)}",\n'
        f'    "{hashlib.sha1(data).hexdigest()}",\n'
        f"{literal(text)},\n"
        f"    {len(data)},\n"
        f"    {'UINT_MAX' if clean is None else clean},\n"
        f"    {index},\n"
        f"    {many},\n"
        f"}};\n"
    )


def script_name(path):
    family, name = path.parent.name, path.stem
    return family if name == family else f"{family}_{name}"


def main(header, source, *scripts):
    declarations, definitions, addresses, joined = [], [], [], []
    for path in sorted(map(pathlib.Path, scripts), key=script_name):
        name = script_name(path)
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            sys.exit(f"{path}: a script's name is part of a C name")
        text = body(path)
        many = "NULL"
        if name in TOGETHER:  # it is in no list, and numbered behind all that are
            many = f"&many_{name}"
            number = len(scripts) + len(joined)
            joined.append(name)
            definitions.append(
                definition(f"many_{name}", together(text), 0, number, "NULL",
                           "static const belay__script_t")
            )
        declarations.append(f"extern const belay__script_t belay__script_{name};")
        definitions.append(
            definition(f"belay__script_{name}", text, clean_lines(text), len(addresses), many,
                       "const belay__script_t")
        )
        addresses.append(f"    &belay__script_{name},")
    if missing := TOGETHER.difference(joined):
        sys.exit(f"no such scripts: {missing}")

    pathlib.Path(header).write_text(
        "/* Made from src/lua by tools/embed_lua.py. */\n"
        "#ifndef BELAY_SCRIPTS_GEN_H\n"
        "#define BELAY_SCRIPTS_GEN_H\n\n"
        '#include "core/call/script.h"\n\n' + "\n".join(declarations) + "\n\n"
        "/* All of them, by their index. */\n"
        f"#define BELAY__SCRIPTS {len(addresses)}\n"
        "extern const belay__script_t *const belay__scripts[BELAY__SCRIPTS];\n\n"
        "#endif\n"
    )
    number = len(addresses) + len(joined)
    pathlib.Path(source).write_text(
        "/* Made from src/lua by tools/embed_lua.py. */\n"
        "#include <limits.h>\n\n"
        '#include "scripts.gen.h"\n\n'
        "/* ISO C promises 4095 characters in a literal; every compiler takes more. */\n"
        '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n' + "\n".join(definitions) + "\n"
        f"_Static_assert({number} <= BELAY__SCRIPTS_MAX, "
        '"a client has a bit for each");\n\n'
        "const belay__script_t *const belay__scripts[BELAY__SCRIPTS] = {\n"
        + "\n".join(addresses) + "\n};\n"
    )


if sys.argv[1] == "--include":
    INCLUDES = pathlib.Path(sys.argv[2])
    del sys.argv[1:3]
main(*sys.argv[1:])
