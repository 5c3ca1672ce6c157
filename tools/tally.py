#!/usr/bin/env python3
"""Count the results of `meson test`: tally.py TESTLOG.json...

Each case of a cmocka or TAP program counts; any other test counts as one. Of a repeated test, only
the last run counts. Prints the output of all failed runs, and at the end "N passed, N failed".

With --again: print the names of the tests to repeat, one at a time. Tests use real clocks on a
shared machine, so a few of hundreds may fail because the machine stood still. More failures, a
crash, a timeout, or a wrong answer that no delay explains (assert_never) are not repeated.
"""

import json
import os
import re
import signal
import sys

A_FEW = 5


def count(test):
    """(passed, failed, skipped) of one test."""
    output = test.get("stdout") or ""
    tap = re.findall(r"^(ok|not ok) \d+(?:.*?( # skip))?", output, re.MULTILINE)
    passed = output.count("[       OK ] ") + tap.count(("ok", ""))
    failed = output.count("[  FAILED  ] ") + sum(said == "not ok" for said, _ in tap)
    skipped = output.count("[  SKIPPED ] ") + tap.count(("ok", " # skip"))
    if test["result"] == "SKIP":
        skipped = max(skipped, 1)
    elif test["result"] in ("OK", "EXPECTEDFAIL"):
        passed = passed if passed + skipped else 1
    else:  # a crash or a timeout prints no result line
        failed = max(failed, 1)
    return passed, failed, skipped


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as log:
        return [json.loads(line) for line in log]


def name_of(test):
    return test["name"].split(" / ")[-1]


def show(test, what):
    print(f"\n==== {test['name']}: {what}, exit status {test['returncode']}")
    print((test.get("stdout") or "") + (test.get("stderr") or ""))


def main(paths):
    passed = failed = skipped = 0
    tests = {}
    again = []
    for path in paths:
        ran = read(path)
        if not ran:
            print(f"no test ran: there is nothing in {path}")
            failed += 1
        for test in ran:
            first = tests.setdefault(test["name"], test)
            if first is not test:
                again.append(name_of(test))
                show(first, f"{test['result']} by itself, after {first['result']}")
                if count(test)[0] >= sum(count(first)[:2]):  # nothing is left out
                    tests[test["name"]] = test

    for test in tests.values():
        oks, fails, skips = count(test)
        passed, failed, skipped = passed + oks, failed + fails, skipped + skips
        if fails:
            show(test, test["result"])
    if again:
        print(f"run again, by themselves: {' '.join(again)}")
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


# Failures that a slow machine does not explain.
SERIOUS = (
    "NEVER: ",
    "Test failed with exception",
    "runtime error: ",
    "ERROR: AddressSanitizer",
    "Assertion `",
)


def may_be_the_machines(test):
    """True if a stop of the machine may explain the failure."""
    output = (test.get("stdout") or "") + (test.get("stderr") or "")
    # A case that ended at its failure leaks.
    leaks = "ERROR: LeakSanitizer" in output and "[  FAILED  ]" in output
    aborted = leaks and test["returncode"] == -signal.SIGABRT
    crashed = not 0 < test["returncode"] < 128 and not aborted
    timeless = name_of(test).endswith("_model") or any(words in output for words in SERIOUS)
    return test["result"] in ("FAIL", "ERROR") and not crashed and not timeless


def list_again(paths):
    failed = [test for path in paths for test in read(path) if count(test)[1]]
    if len(failed) <= A_FEW:
        for test in failed:
            if may_be_the_machines(test):
                print(name_of(test))


if sys.argv[1:2] == ["--again"]:
    list_again(sys.argv[2:])
else:
    sys.exit(main(sys.argv[1:]))
