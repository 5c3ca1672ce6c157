#!/usr/bin/env python3
"""check_prose.py: fails if a folder or page has too many sentences that are hard to read.
check_prose.py PATH...: prints such sentences of these files and folders, and their rate.

Comments, texts in string literals and Markdown are read. A finding is a place to look at, and a
low rate proves little: the rules know only some patterns.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
# Findings per 100 sentences, at most.
LIMITS = {"include": 0.5, "src": 0.5, "adapters": 0.5, "bench": 0.5, "guide": 0.5, "tools": 0.5}
LIMITS["test"] = 1.0
LIMITS |= {page: 0.5 for page in PAGES}
SUFFIXES = {".c", ".h", ".lua", ".md", ".py", ".sh", ".build", ".bats", ".mutant"}
SKIPPED = {"build", "node_modules", "subprojects"}

START = r"(?:^|[.;:,(] |\band |\bor |\bto |\bof |\bfor |\bby |\bfrom |\bbut |\bthat |\bwith )"
RULES = {
    "a headless who": START + r"[Ww]ho(?:ever)?\b(?! knows\b)(?=[ ])",
    "a headless what": START.replace(",", "")
    + r"[Ww]hat(?:ever)? (?!if\b|is this\b|is that\b|happened\b)(?!.*\?)",
    "whose, whom": r"(?:^|[.;:(] )(?:Whose|Whom|whose|whom)\b|\b(?:of|to) whom\b",
    "a person": r"\b(?:he|she|his|him|himself|herself)\b",
    "so long, so many": r"\bso (?:long|many|much|often|far) (?!as\b|that\b)"
    r"|(?:for|after|in) so (?:long|many)\b",
    "is told": r"\b(?:is|are|was|were|be) told\b",
    "an archaic word": r"\b(?:hear of|heard of|all the same|of late|let in|looked after|beside it"
    r"|at a stretch|by and by|thereby|whereof|thereof|nobody|somebody|lest)\b",
    "that as a noun": r"(?:^|[.;] )That (?:it|they|one|there|which)\b",
}
RULES = {name: re.compile(rule) for name, rule in RULES.items()}

C_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
C_STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
C_STRINGS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def c_paragraphs(text):
    """Comments, and adjacent string literals of at least four words."""
    for token in C_TOKEN.finditer(text):
        if token.group().startswith("/"):
            yield line_of(text, token.start()), token.group()
    code = C_TOKEN.sub(
        lambda t: re.sub(r"[^\n]", " ", t.group()) if t.group()[0] == "/" else t.group(), text
    )
    for strings in C_STRINGS.finditer(code):
        words = "".join(C_STRING.findall(strings.group()))
        words = re.sub(r"%[-0-9.*a-zA-Z]+|\\[nt]", " ", words)
        if len(words.split()) >= 4:
            yield line_of(code, strings.start()), words


def line_paragraphs(text, mark):
    """Runs of lines that are comments."""
    block = []
    for number, line in enumerate(text.splitlines() + [""], 1):
        comment = re.match(r"\s*" + mark + r"(.*)", line)
        if comment:
            block.append(comment[1])
        elif block:
            yield number - len(block), "\n".join(block)
            block = []


def markdown_paragraphs(text):
    text = re.sub(r"```.*?```", lambda code: "\n" * code.group().count("\n"), text, flags=re.S)
    number = 1
    for paragraph in re.split(r"(\n\s*\n)", text):
        if paragraph.strip():
            yield number, paragraph
        number += paragraph.count("\n")


def paragraphs(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix in (".c", ".h"):
        return c_paragraphs(text)
    if path.suffix == ".md":
        return markdown_paragraphs(text)
    return line_paragraphs(text, "--" if path.suffix == ".lua" else "#")


def sentences(paragraph):
    # A new paragraph, list item, table cell or line of a drawing ends a sentence.
    for part in re.split(r"\n\s*(?:\*\s*)?\n|\n\s*(?:\*\s*)?(?=[-*|] )|\|", paragraph):
        flat = re.sub(r"\s*\n\s*(?:\*(?!/)\s?|//\s?|#\s?)?", " ", part)
        flat = re.sub(r"^\s*/?[*/#<]+\s*|\s*\*/\s*$", "", flat)
        if not re.search(r"--[^ ]*>|<--|\+--|[-=]{4,}", flat):
            for sentence in re.split(r"(?<=[.;:!?])\s+", flat):
                if len(sentence.split()) >= 4:
                    yield sentence.strip(" *`")


def files_of(path):
    if path.is_file():
        return [path]
    found = (p for p in path.rglob("*") if p.suffix in SUFFIXES and not SKIPPED & set(p.parts))
    return sorted(found)


def measure(path):
    """The number of sentences below a path, and its findings as lines of text."""
    total, found = 0, []
    for file in files_of(path):
        for line, paragraph in paragraphs(file):
            for sentence in sentences(paragraph):
                total += 1
                rules = [name for name, rule in RULES.items() if rule.search(sentence)]
                if rules:
                    found.append(f"{file}:{line}: {', '.join(rules)}: {sentence[:160]}")
    return total, found


def main():
    asked = dict.fromkeys(sys.argv[1:], 100.0)
    if not asked:
        os.chdir(ROOT)
    status = 0
    for name, limit in (asked or LIMITS).items():
        total, found = measure(pathlib.Path(name))
        rate = 100 * len(found) / max(total, 1)
        if asked or rate > limit:
            print(*found, sep="\n")
        print(f"{name}: {len(found)} of {total} sentences, {rate:.2f} per 100")
        if rate > limit or total == 0:
            status = 1
    sys.exit(status)


main()
