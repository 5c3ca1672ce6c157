#!/usr/bin/env python3
"""An open loop starts operations by a schedule, independent of their ends: open.py BENCH. It
measures one latency for each scheduled operation, also if the server is too slow for them."""

import json
import pathlib
import subprocess
import sys
import tempfile


def check(bench, file, scenario, rate, concurrency):
    options = ["--rate", str(rate), "--concurrency", str(concurrency), "--rounds", "1",
               "--seconds", "0.2", "--subjects", "belay,naive-c", "--json", str(file)]
    subprocess.run([bench, scenario, *options], check=True, stdout=subprocess.DEVNULL)
    results = json.loads(file.read_text())["results"]
    assert len(results) == 2, results
    for result in results:
        due = result["rate"] * result["seconds"]
        assert result["load"] == "open" and result["rate"] == rate, result
        # JSON numbers have six digits
        assert abs(result["latencies"] - due) <= 2 + 1e-4 * due, (due, result)
        assert result["ratio_to_limit"] is None and result["client_share"] > 0, result
    return results


with tempfile.TemporaryDirectory(prefix="belay-bench-open-") as name:
    file = pathlib.Path(name) / "all.json"
    check(sys.argv[1], file, "counter", 2000, 8)
    # more than one runner can do: late operations wait longer, and still count
    for result in check(sys.argv[1], file, "lock", 100000, 1):
        assert result["ops_per_s"] < 95000 and result["p99_us"] > result["p50_us"] > 1000, result
