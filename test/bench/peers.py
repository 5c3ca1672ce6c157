#!/usr/bin/env python3
"""What others use is measured as everything else is: peers.py BENCH SUBJECT SCENARIO... Skipped, with a word, where it is not
there."""

import json
import pathlib
import subprocess
import sys
import tempfile

bench, subject, *scenarios = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="belay-bench-peers-") as name:
    file = pathlib.Path(name) / "all.json"
    subprocess.run([bench, *scenarios, "--concurrency", "8", "--rounds", "1", "--seconds", "0.1", "--subjects", subject,
                    "--json", str(file)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    told = json.loads(file.read_text())
    if told["facts"][subject].startswith("not there"):
        print(f"{subject} is {told['facts'][subject]}")
        sys.exit(77)
    assert [(r["scenario"], r["subject"], r["concurrency"]) for r in told["results"]] == [(s, subject, 8) for s in scenarios], told
    for result in told["results"]:
        # of each operation, and for a second (as node counts it), however short the others are
        # measured
        assert result["seconds"] > 0.95 and result["latencies"] == round(result["ops_per_s"] * result["seconds"]), result
        assert result["p50_us"] > 0 and result["client_us_per_op"] > 0 and result["server_us_per_op"] > 0, result
        assert result["commands_per_op"] >= 1, result
