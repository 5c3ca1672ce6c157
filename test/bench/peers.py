#!/usr/bin/env python3
"""Other libraries are measured in the same way: peers.py BENCH SUBJECT SCENARIO... It is skipped
with a message if the library is not installed."""

import json
import pathlib
import subprocess
import sys
import tempfile

bench, subject, *scenarios = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="belay-bench-peers-") as name:
    file = pathlib.Path(name) / "all.json"
    options = ["--concurrency", "8", "--rounds", "1", "--seconds", "0.1", "--subjects", subject,
               "--json", str(file)]
    subprocess.run([bench, *scenarios, *options], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    report = json.loads(file.read_text())
    if report["facts"][subject].startswith("not there"):
        print(f"{subject} is {report['facts'][subject]}")
        sys.exit(77)
    rows = [(r["scenario"], r["subject"], r["concurrency"]) for r in report["results"]]
    assert rows == [(scenario, subject, 8) for scenario in scenarios], report
    for result in report["results"]:
        # of each operation, and for a second (as node counts it), however short the others are
        # measured
        assert result["seconds"] > 0.95, result
        assert result["latencies"] == round(result["ops_per_s"] * result["seconds"]), result
        for name in ("p50_us", "client_us_per_op", "server_us_per_op"):
            assert result[name] > 0, result
        assert result["commands_per_op"] >= 1, result
