#!/usr/bin/env python3
"""The reports of the benchmark program: report.py BENCH. All files exist, are well-formed and
complete; the figures are not checked."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

FIELDS = """scenario subject concurrency keys batch load placement ops_per_s p50_us p99_us p999_us
p99_control_us p99_excess_us server_us_per_op client_us_per_op commands_per_op allocs_per_op
bytes_per_object max_gap_us ratio_to_limit ratio_to_single client_share latencies seconds
runs""".split()
SUBJECTS = ("belay", "limit", "limit-single", "naive-c")


def check(bench, folder):
    files = {kind: folder / f"all.{kind}" for kind in ("json", "markdown")}
    options = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    options += ["--half", "--concurrency", "8", "--rounds", "2", "--seconds", "0.1",
                "--subjects", ",".join(SUBJECTS)]
    subprocess.run([bench, "lock", "counter", *options], check=True, stdout=subprocess.DEVNULL)

    results = json.loads(files["json"].read_text())["results"]
    # of both scenarios belay and naive-c in a closed loop and at half its rate, and the limit; of
    # the lock also the limit of single calls; and a calm one if half the rate leaves the client too
    # little time
    loads = [result["load"] for result in results]
    assert len(results) - loads.count("calm") == 11, results
    for result in results:
        assert set(FIELDS) <= set(result), result
        rounds = {1, 2} if result["load"] == "calm" else {2}  # calm is measured where it is needed
        assert len(result["runs"]) in rounds and result["ops_per_s"] > 0, result
        assert (result["p99_excess_us"] is not None) == (result["load"] != "closed"), result
        assert (result["ratio_to_limit"] is not None) == (result["load"] == "closed"), result

    text = files["markdown"].read_text()
    plots = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(plots) == 2, plots
    for plot in plots:
        xml.dom.minidom.parse(str(folder / plot))
    rows = tuple(f"| {subject} " for subject in SUBJECTS)
    tables = [line for line in text.splitlines() if line.startswith(rows)]
    assert len([line for line in tables if line.count("|") > 10]) == len(results), text

    aims = json.loads(files["json"].read_text())["aims"]
    assert len(aims) > 20, aims
    assert all(aim["met"] in ("yes", "NO", "not measured", "") for aim in aims), aims
    assert all((aim["met"] == "not measured") == (aim["measured"] == "") for aim in aims), aims
    for aim in aims:
        row = f"| {aim['aim']} | {aim['asked']} | {aim['measured']} | {aim['met']} |"
        assert row in text, (aim, text)


with tempfile.TemporaryDirectory(prefix="belay-bench-report-") as name:
    check(sys.argv[1], pathlib.Path(name))
