#!/usr/bin/env python3
"""Counts what runs of `meson test` came to: tally.py TESTLOG.json...

Where a test is a cmocka program or speaks TAP, each of its cases counts; any other test counts as one. Shows what
the failed ones printed, and ends with the line "N passed, N failed".
"""

import json
import os
import re
import sys


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
    else:  # a crash or a timeout leaves no line of its own
        failed = max(failed, 1)
    return passed, failed, skipped


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as log:
        return [json.loads(line) for line in log]


def main(paths):
    passed = failed = skipped = 0
    tests = []
    for path in paths:
        ran = read(path)
        if not ran:
            print(f"no test ran: there is nothing in {path}")
            failed += 1
        tests += ran

    for test in tests:
        oks, fails, skips = count(test)
        passed, failed, skipped = passed + oks, failed + fails, skipped + skips
        if fails:
            print(f"\n==== {test['name']}: {test['result']}, exit status {test['returncode']}")
            print((test.get("stdout") or "") + (test.get("stderr") or ""))
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main(sys.argv[1:]))
