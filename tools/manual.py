#!/usr/bin/env python3
"""manual.py --list FILE...: print the names of the manual pages of these files.
manual.py VERSION OUT FILE...: write the pages into the folder OUT.

A header has a page, belay_NAME(3), with its types, constants and remarks, and a list of its
functions. Each function has a page of its own. A guide, NAME=FILE.md, is the page NAME(7).
"""

import pathlib
import re
import sys


def clean(comment):
    """The text of a comment, without its stars."""
    body = re.sub(r"^/\*+<?\s?|\s*\*/$", "", comment)
    return "\n".join(re.sub(r"^\s*\* ?", "", line) for line in body.split("\n")).strip()


def scan(text):
    """Yield (comment, is_doc, code) for each top-level part of a header."""
    conditions = r"^\s*#\s*(ifdef|ifndef|if|else|elif|endif|include|undef)\b.*$"
    text = re.sub(conditions, "", text, flags=re.M)
    text = re.sub(r'^extern "C" \{$|^\}$', "", text, flags=re.M)
    at, comment = 0, ""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("/*", at):
            end = text.index("*/", at) + 2
            if comment:
                yield clean(comment), comment.startswith("/**"), ""
            comment, at = text[at:end], end
        else:
            end = code_end(text, at)
            code = text[at:end].strip()
            yield clean(comment), comment.startswith("/**"), code
            comment, at = "", end
    if comment:
        yield clean(comment), comment.startswith("/**"), ""


def code_end(text, at):
    """The end of the definition or declaration that starts at a position."""
    if text[at] == "#":
        return re.compile(r"(?:[^\\\n]|\\\n|\\.)*").match(text, at).end()
    depth = 0
    tokens = re.compile(r"/\*.*?\*/|[{};\n]", re.S)
    for token in tokens.finditer(text, at):
        if token[0] in "{}":
            depth += 1 if token[0] == "{" else -1
        last = token[0] == ";" or (token[0] == "}" and re.match(r"\s*\n", text[token.end() :]))
        if depth == 0 and last:
            rest = re.compile(r"[ ]*/\*\*<.*?\*/", re.S).match(text, token.end())
            return rest.end() if rest else token.end()
    return len(text)


# ---- roff ----


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def verbatim(lines):
    return [".RS 2", ".nf", *[escape(line) for line in lines], ".fi", ".RE"]


def prose(text):
    """Lines of roff for the text of a comment."""
    out, block, in_code = [], [], False

    def flush():
        if block:
            out.extend(verbatim(block))
            block.clear()

    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        word = line.strip()
        if word == "@code":
            in_code = True
        elif word == "@endcode":
            in_code = False
            flush()
        elif in_code or re.search(r"\S {3,}\S", line):
            block.append(line)
        elif re.match(r"- |\d+\. ", word):
            flush()
            mark, rest = word.split(" ", 1)
            out += [f'.IP "{escape(mark)}" 3', escape(rest)]
        elif indent >= 2 and word and was_item(out):
            out.append(escape(word))
        elif indent >= 2 and word:
            block.append(line)
        else:
            flush()
            out.append(escape(word) if word else ".PP")
    flush()
    return out


def was_item(out):
    """True if the text so far ends in an item of a list."""
    for line in reversed(out):
        if line.startswith(".IP"):
            return True
        if line.startswith((".PP", ".RE", ".SS")):
            return False
    return False


# ---- the parts of a page ----


def members(code):
    """Yield (declaration, text) for the members of a struct or the values of an enum."""
    body = code[code.index("{") + 1 : code.rindex("}")]
    parts = re.split(r"(/\*.*?\*/)", body, flags=re.S)
    before, rows = "", []
    for part in parts:
        if part.startswith("/**<"):
            rows[-1][1] = clean(part)
        elif part.startswith("/**"):
            before = clean(part)
        elif not part.startswith("/*"):
            for line in re.split(r"(?<=[;,{])\s*\n|(?<=[;,])\s+(?=$)|\n\s*\n", part):
                line = " ".join(line.split())
                line = line.removeprefix("} ")
                if line and line != "struct {":
                    rows.append([line.rstrip(","), before])
                    before = ""
    return rows


def plain(code):
    """A declaration without comments and visibility."""
    code = re.sub(r"\s*/\*.*?\*/", "", code, flags=re.S)
    return code.replace("BELAY_API ", "")


def render_type(code, text):
    name = re.search(r"(\w+);?\s*$", plain(code))
    kind = re.match(r"typedef (struct|enum)?", code)[1] or "type"
    name = re.search(r"\(\*(\w+)\)", code) or name
    out = [f".SS {name[1]}", *prose(text)]
    if "{" not in code:
        return out + ([] if kind == "struct" else verbatim(plain(code).split("\n")))
    for declaration, comment in members(code):
        if comment:
            out += [".TP", f".B {escape(declaration)}", *prose(comment)]
    return out


def render_define(code, text):
    head = re.match(r"#define (\w+)(\([^)]*\))?\s*", code)
    trailing = re.search(r"/\*\*<(.*?)\*/", code, re.S)
    rows = re.findall(r'X\((\w+), (-\d+), (\d), "(.*?)"\)', code)
    if not head or head[1].endswith("_H"):
        return []
    out = [f".SS {head[1]}"]
    if rows:
        out += prose(text)
        for name, number, retryable, words in rows:
            again = "; can be retried" if retryable == "1" else ""
            out += [".TP", f".B BELAY_{name} ({escape(number)})", escape(words) + again]
        return out
    value = code[head.end() :].split("/*")[0].strip()
    shown = [f"Value: {escape(value)}", ".PP"] if value and "\\" not in value else []
    return out + shown + prose(clean(trailing[0]) if trailing else text)


def signature_of(code):
    """A function's declaration, without the room for its visibility."""
    text = plain(code).split("{")[0].strip().rstrip(";") + ";"
    shift = len("BELAY_API ") if "BELAY_API" in code else 0
    return [line[shift if n > 0 else 0 :] for n, line in enumerate(text.split("\n"))]


def first_sentence(text):
    flat = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z)0-9])[.:] ", flat + " ")[0].strip().rstrip(".:")


def head(name, version, title, synopsis):
    return [
        f'.TH {name.upper()} 3 "" "belay {version}" "belay"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{name} \\- {escape(title)}",
        ".SH SYNOPSIS",
        ".nf",
        "#include <belay.h>",
        "",
        *[escape(line) for line in synopsis],
        ".fi",
        ".SH DESCRIPTION",
    ]


def render_other(comment, is_doc, code):
    """A part of a header that is no function."""
    if code.startswith("typedef") and comment:
        return render_type(code, comment)
    if code.startswith("#define"):
        return render_define(code, comment)
    if comment and not is_doc and not code and "\n" in comment:
        dashed = re.match(r"-+ (.*?) -+\s*", comment)
        capitals = re.match(r"[A-Z][A-Z ]*[A-Z]\b", comment)
        name = dashed[1] if dashed else capitals[0].lower() if capitals else "remarks"
        text = comment[dashed.end() :] if dashed else comment
        return [f".SS {name.capitalize()}", *prose(text)]
    return []


def pages(header, version):
    """Yield (name, lines) of the pages of a header, its own page last."""
    name = "belay_" + header.stem
    title, synopsis, body, functions = "", [], [], []
    for comment, is_doc, code in scan(header.read_text()):
        found = re.search(r"\b(belay_\w+)\(", code) if "BELAY_API" in code else None
        found = found or re.match(r"static inline .*?\b(belay_\w+)\(", code, re.S)
        if not title:
            title = comment.partition("\n\n")[0].replace("\n", " ").rstrip(".")
            comment = comment.partition("\n\n")[2]
        if found:
            sentence, signature = first_sentence(comment), signature_of(code)
            functions += [".TP", f".BR {found[1]} (3)", escape(sentence)]
            synopsis += [*signature, ""]
            if found[1] == name:  # the header's own page
                body += [f".SS {name}()", *prose(comment)]
                continue
            lines = [*head(found[1], version, sentence, signature), *prose(comment)]
            yield found[1], [*lines, ".SH SEE ALSO", f".BR {name} (3)"]
        else:
            body += render_other(comment, is_doc, code)
    listed = [".SH FUNCTIONS", *functions] if functions else []
    others = [f".BR belay_{other} (3)," for other in ("client", "loop", "request")]
    see = [".SH SEE ALSO", *others, ".BR belay_error (3)"]
    yield name, [*head(name, version, title, synopsis), *body, *listed, *see]


# ---- guides ----


def inline(text):
    """Markdown within a line: code and strong words are bold, links are their text."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", escape(text))
    return re.sub(r"`([^`]*)`|\*\*([^*]*)\*\*", lambda m: f"\\fB{m[1] or m[2]}\\fR", text)


def table(rows):
    cells = [[inline(cell.strip()) for cell in row.strip("|").split("|")] for row in rows]
    del cells[1]  # the line of dashes
    lines = [".TS", "tab(|) allbox;", " ".join("lx" for _ in cells[0]) + "."]
    for row in cells:
        lines.append("|".join("T{\n" + cell + "\nT}" for cell in row))
    return lines + [".TE", ".PP"]


def guide(path, name, version):
    """The lines of a page for a guide."""
    parts = re.split(r"(^```\w*\n.*?^```$|(?:^\|[^\n]*\n)+)", path.read_text(), flags=re.M | re.S)
    title = parts[0].partition("\n")[0].removeprefix("# ")
    out = ["'\\\" t", f'.TH {name.upper()} 7 "" "belay {version}" "belay"', ".nh", ".ad l"]
    out += [".SH NAME", f"{escape(name)} \\- {escape(title)}", ".SH DESCRIPTION"]
    for part in parts:
        if part.startswith("```"):
            out += verbatim(part.split("\n")[1:-1])
        elif part.startswith("|"):
            out += table(part.strip().split("\n"))
        else:
            out += guide_text(part)
    return out


def guide_text(text):
    out = []
    for line in text.split("\n"):
        item = re.match(r"(- |\d+\. )(.*)", line)
        if line.startswith("# "):
            continue
        if line.startswith("## "):
            out.append(f".SH {escape(line[3:]).upper()}")
        elif item:
            out += [f'.IP "{escape(item[1].strip())}" 3', inline(item[2])]
        else:
            out.append(inline(line.strip()) if line.strip() else ".PP")
    return out


def all_pages(files, version):
    """Yield (file name, lines) of the pages of all files."""
    for file in files:
        name, is_guide, path = file.rpartition("=")
        if is_guide:
            yield f"{name}.7", guide(pathlib.Path(path), name, version)
        else:
            for page, lines in pages(pathlib.Path(path), version):
                yield f"{page}.3", lines


def main():
    if sys.argv[1] == "--list":
        print("\n".join(name for name, _ in all_pages(sys.argv[2:], "")))
        return
    for name, lines in all_pages(sys.argv[3:], sys.argv[1]):
        (pathlib.Path(sys.argv[2]) / name).write_text("\n".join(lines) + "\n")


main()
