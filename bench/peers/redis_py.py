#!/usr/bin/env python3
"""Measures the Lock of redis-py with one thread for each concurrent operation. The command line has
the scenario. It prints when it begins and ends to measure, and the results
(bench/load/subjects/peer.h)."""

import collections
import os
import sys
import threading
import time

import redis


WARM = 5  # operations of each thread before it measures, besides the warm-up time


def connect(url):
    if url.startswith("unix://"):
        return redis.Redis(unix_socket_path=url[7:])
    return redis.Redis.from_url(url)


def main():
    _, scenario, *rest = sys.argv[1:]
    if scenario == "--version":
        print(f"redis-py {redis.__version__}, Python {sys.version.split()[0]}")
        return
    concurrency, _ = map(int, rest[:2])
    warm_up, seconds = map(float, rest[2:4])
    state = {"phase": "warming"}
    ended = [0] * concurrency
    latencies = [collections.Counter() for _ in range(concurrency)]

    def run(number):
        server = connect(rest[4])
        while state["phase"] != "over":
            began = time.perf_counter()
            lock = server.lock(f"lock-{number}", timeout=60)
            if not lock.acquire(blocking=False):
                print("a lock that nobody else wants was not to be had", file=sys.stderr)
                os._exit(1)  # sys.exit() would end this thread alone
            lock.release()
            ended[number] += 1
            if state["phase"] == "measuring":
                latencies[number][round((time.perf_counter() - began) * 1e6)] += 1

    def fail(what):
        sys.__excepthook__(what.exc_type, what.exc_value, what.exc_traceback)
        os._exit(1)

    threading.excepthook = fail  # else the others would go on without it
    threads = [threading.Thread(target=run, args=(number,)) for number in range(concurrency)]
    for thread in threads:
        thread.start()
    time.sleep(warm_up)
    while min(ended) < WARM:
        time.sleep(0.01)
    print("begin", flush=True)
    began = time.perf_counter()
    state["phase"] = "measuring"
    time.sleep(seconds)
    elapsed = time.perf_counter() - began
    state["phase"] = "over"
    print("end", flush=True)
    for thread in threads:
        thread.join()
    total = sum(latencies, collections.Counter())
    print(total.total(), elapsed)
    for us, times in total.items():
        print(us, times)


main()
