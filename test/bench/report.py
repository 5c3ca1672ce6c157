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
bytes_per_object max_gap_us ratio_to_limit ratio_to_single ratio_to_naive client_ratio_to_naive
p99_ratio_to_naive client_share latencies seconds runs""".split()
SUBJECTS = ("belay", "limit", "limit-single", "naive-c")


def check_ratios(results, result):
    """The ratios are those of this run's medians, and empty where there is no other subject."""
    beside = {other["subject"]: other for other in results
              if all(other[key] == result[key] for key in ("scenario", "load"))}
    closed, subject = result["load"] == "closed", result["subject"]
    naive = subject != "naive-c"
    for ratio, figure, other, wanted in (
            ("ratio_to_limit", "ops_per_s", "limit", closed and subject != "limit"),
            ("ratio_to_naive", "ops_per_s", "naive-c", closed and naive),
            ("client_ratio_to_naive", "client_us_per_op", "naive-c", closed and naive),
            ("p99_ratio_to_naive", "p99_us", "naive-c", not closed and naive)):
        assert (result[ratio] is not None) == wanted, (ratio, result)
        if wanted:
            exact = result[figure] / beside[other][figure]
            assert abs(result[ratio] / exact - 1) < 1e-6, (ratio, exact, result)
    if not closed:
        rates = {beside[name]["rate"] for name in ("belay", "naive-c")}
        assert len(rates) == 1, beside


def check_curve(bench, folder):
    """With three sizes there are curves of throughput and latency, with names, units and title."""
    markdown = folder / "curve.markdown"
    subprocess.run([bench, "redlock", "--half", "--rounds", "1", "--seconds", "0.1", "--subjects",
                    "belay,naive-c", "--markdown", str(markdown)], check=True,
                   stdout=subprocess.DEVNULL)
    plots = re.findall(r"!\[.*?\]\((.*?)\)", markdown.read_text())
    assert plots == ["plots/redlock.svg", "plots/redlock-latency.svg"], plots
    for plot in plots:
        svg = xml.dom.minidom.parse(str(folder / plot))
        texts = {node.firstChild.data for node in svg.getElementsByTagName("text")}
        assert {"belay", "naive-c", "operations in flight (log)", "1", "64", "1k"} <= texts, texts
        assert len(svg.getElementsByTagName("polyline")) == 2, plot


def check(bench, folder):
    files = {kind: folder / f"all.{kind}" for kind in ("json", "markdown")}
    options = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    options += ["--half", "--concurrency", "8", "--rounds", "2", "--seconds", "0.1",
                "--subjects", ",".join(SUBJECTS)]
    subprocess.run([bench, "lock", "counter", *options], check=True, stdout=subprocess.DEVNULL)

    results = json.loads(files["json"].read_text())["results"]
    # of both scenarios belay and naive-c in a closed loop and at half of belay's rate, and the
    # limit; of the lock also the limit of single calls
    assert len(results) == 11, results
    for result in results:
        assert set(FIELDS) <= set(result), result
        assert len(result["runs"]) == 2 and result["ops_per_s"] > 0, result
        assert (result["p99_excess_us"] is not None) == (result["load"] == "half"), result
        check_ratios(results, result)

    text = files["markdown"].read_text()
    plots = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert plots == ["plots/lock.svg", "plots/counter.svg"], plots
    for plot in plots:
        xml.dom.minidom.parse(str(folder / plot))
    rows = tuple(f"| {subject} " for subject in SUBJECTS)
    tables = [line for line in text.splitlines() if line.startswith(rows)]
    assert len([line for line in tables if line.count("|") > 10]) == len(results), text

    aims = json.loads(files["json"].read_text())["aims"]
    assert len(aims) > 20, aims
    assert all(aim["met"] in ("reached", "MISSED", "not measured") for aim in aims), aims
    assert all((aim["met"] == "not measured") == (aim["measured"] == "") for aim in aims), aims
    for aim in aims:
        row = f"| {aim['aim']} | {aim['asked']} | {aim['measured']} | {aim['met']} |"
        assert row in text, (aim, text)


with tempfile.TemporaryDirectory(prefix="belay-bench-report-") as name:
    check(sys.argv[1], pathlib.Path(name))
    check_curve(sys.argv[1], pathlib.Path(name))
