#!/usr/bin/env python3
"""Find new seeds for mutants that need one: reseed.py BUILD [NAME...]

A change that draws another random number changes the world of a seed. BUILD has the mutants'
programs (ninja sim-mutant-NAME). A mutant whose seed no longer finds it gets the first seed that
finds it and with which belay itself passes.
"""

import pathlib
import re
import subprocess
import sys

MUTANTS = pathlib.Path(__file__).parent.parent / "test/sim/mutants"
SEEDS = 20000


def run(program, *arguments):
    command = [program, "--jobs", "1", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode == 0, done.stdout


def reseed(build, path):
    text = path.read_text(encoding="utf-8")
    field = dict(re.findall(r"^(scenario|seed|caught by): (.*)$", text, re.M))
    if "seed" not in field:
        return
    sim, mutant = build / "test/sim/belay-sim", build / f"test/sim/mutants/sim-mutant-{path.stem}"
    world = ("--scenario", field["scenario"])
    hunt = (*world, "--expect", field["caught by"])
    first = int(field["seed"])
    one = ("--first", first, "--seeds", 1)
    if run(mutant, *hunt, *one)[0] and run(sim, *world, *one)[0]:
        return
    first = 1
    while first < SEEDS:
        found, said = run(mutant, *hunt, "--first", first, "--seeds", SEEDS)
        if not found:
            break
        seed = int(re.search(r"found with seed (\d+)", said)[1])
        if run(sim, *world, "--first", seed, "--seeds", 1)[0]:
            text = text.replace(f"\nseed: {field['seed']}\n", f"\nseed: {seed}\n")
            path.write_text(text, encoding="utf-8")
            print(f"{path.stem}: {field['seed']} -> {seed}")
            return
        first = seed + 1
    sys.exit(f"{path.stem}: none of {SEEDS} seeds finds it out")


def main(build, *names):
    for path in sorted(MUTANTS.glob("*.mutant")):
        if not names or path.stem in names:
            reseed(pathlib.Path(build), path)


main(*sys.argv[1:])
