#!/usr/bin/env python3
"""check_circles.py: fails if files of src/ or adapters/ include each other in a circle.

A .c file and the .h file of its name are one node. A header that several .c files implement would
hide a circle: a node's functions belong to its own .c file.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = [ROOT / "src", ROOT / "adapters", ROOT / "adapters" / "cli", ROOT / "adapters" / "demo"]


def included(path):
    """The files of the tree that a file includes."""
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.M):
        for folder in [path.parent, *FOLDERS]:
            if (folder / name).is_file():
                yield folder / name
                break


def graph():
    edges = {}
    for folder in FOLDERS[:2]:
        for path in sorted(folder.rglob("*.[ch]")):
            node = path.with_suffix("")
            to = edges.setdefault(node, set())
            to.update(target.with_suffix("") for target in included(path))
            to.discard(node)
    return edges


def circles(edges):
    """The strongly connected components of more than one node (Tarjan 1972)."""
    number, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        on_stack.add(node)
        for target in sorted(edges.get(node, ())):
            if target not in number:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in on_stack:
                low[node] = min(low[node], number[target])
        if low[node] == number[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            on_stack.difference_update(component)
            if len(component) > 1:
                found.append(component)

    for node in edges:
        if node not in number:
            visit(node)
    return found


def main():
    edges = graph()
    if len(edges) < 100:
        sys.exit(f"only {len(edges)} nodes: the tree is not where it was")
    sys.setrecursionlimit(2 * len(edges) + 1000)
    found = circles(edges)
    for component in found:
        print("a circle:", *sorted(str(node.relative_to(ROOT)) for node in component))
    sys.exit(1 if found else 0)


main()
