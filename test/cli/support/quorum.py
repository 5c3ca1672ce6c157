#!/usr/bin/env python3
"""quorum.py SERVER FOLDER: `belay exec --redlock` on three and five servers, some of them faulty.

Each combination of faults is one belay. All run at once, on one pool of servers. A fault is there
from the start, or begins while the commands run. The number of faulty servers determines the exit
status of each belay:

    too many from the start   120, and the command does not run
    too many later            122
    else                      the command's own status

A line for each combination that ended otherwise; the status is 1 then.
"""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time

TTL = 5
COMMANDS_OWN = 7
LATE, SLOW = 0.1, 5  # seconds: within --timeout, and beyond it
FROM_START = ["dead", "stopped", "slow"]
LATER = ["dies", "stops", "slows"]


class Relay:
    """A socket in front of a server, which answers only after `delay` seconds."""

    def __init__(self, path, server, delay):
        self.path, self.server, self.delay = path, server, delay

    async def serve(self):
        await asyncio.start_unix_server(self.accept, self.path, backlog=1000)

    async def accept(self, near_in, near_out):
        far_in, far_out = await asyncio.open_unix_connection(self.server)
        await asyncio.gather(self.copy(near_in, far_out, 0), self.copy(far_in, near_out, 1))

    async def copy(self, source, target, delays):
        try:
            while data := await source.read(65536):
                if delays and self.delay:
                    await asyncio.sleep(self.delay)
                target.write(data)
        except OSError:
            pass
        target.close()


class Pool:
    """Servers by their fault, as many of each kind as one combination needs."""

    def __init__(self, program, folder):
        self.program, self.folder, self.processes, self.relays = program, folder, {}, []
        self.sockets = {"dead": [f"{folder}/none-{i}" for i in range(3)]}
        for kind, n in ("well", 5), ("stopped", 3), ("dies", 3), ("stops", 3):
            self.sockets[kind] = [self.start(f"{kind}-{i}") for i in range(n)]
        for kind, n, delay in ("slow", 3, SLOW), ("slows", 3, 0), ("late", 5, LATE):
            self.sockets[kind] = []
            for i in range(n):
                relay = Relay(f"{folder}/relay-{kind}-{i}", self.start(f"{kind}-{i}"), delay)
                self.relays.append((kind, relay))
                self.sockets[kind].append(relay.path)

    def start(self, name):
        path = f"{self.folder}/{name}"
        self.processes[name] = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", path, "--save", "",
             "--dir", self.folder, "--tcp-backlog", "1000", "--maxclients", "5000"],
            executable=self.program, stdout=subprocess.DEVNULL)
        return path

    def signal(self, kind, signum):
        for name, process in self.processes.items():
            if name.startswith(kind + "-"):
                process.send_signal(signum)

    def fail(self):
        """Start the faults that begin while the commands run."""
        self.signal("dies", signal.SIGKILL)
        self.signal("stops", signal.SIGSTOP)
        for kind, relay in self.relays:
            if kind == "slows":
                relay.delay = SLOW

    def end(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


def combinations():
    """All of three servers; of five those with a bare or a missing majority, and late servers."""
    for faults in range(4):
        for kinds in itertools.combinations_with_replacement(FROM_START + LATER, faults):
            yield (*kinds, *["well"] * (3 - faults))
    for faults in 2, 3:
        for kinds in itertools.combinations_with_replacement(FROM_START + LATER, faults):
            yield (*kinds, *["well"] * (5 - faults))
    yield from (("late",) * 3, ("late",) * 5, ("dead", "dies", "late", "late", "late"))


def expected(kinds):
    spare = (len(kinds) - 1) // 2
    if sum(kind in FROM_START for kind in kinds) > spare:
        return 120
    return 122 if sum(kind in FROM_START + LATER for kind in kinds) > spare else COMMANDS_OWN


def start_belay(pool, number, kinds, stdin):
    """The command reports its start in a file, and ends with its standard input."""
    left = {kind: list(sockets) for kind, sockets in pool.sockets.items()}
    urls = [word for kind in kinds for word in ("--url", "unix://" + left[kind].pop())]
    return subprocess.Popen(
        ["belay", "exec", f"job-{number}", "--redlock", "--ttl", f"{TTL}s", "--max-ttl", f"{TTL}s",
         "--timeout", "2s", *urls, "--",
         "sh", "-c", f': >"$1"; read -r x; exit {COMMANDS_OWN}', "sh",
         f"{pool.folder}/began-{number}"],
        stdin=stdin, stderr=open(f"{pool.folder}/said-{number}", "wb"))


async def until(condition, seconds=40):
    """The machine may be busy."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.05)


def judge(pool, number, kinds, belay):
    """"": as expected; "late": servers did not answer in time, as on a busy machine; "wrong"."""
    should, status = expected(kinds), belay.poll()
    began = os.path.exists(f"{pool.folder}/began-{number}")
    with open(f"{pool.folder}/said-{number}", encoding="utf-8") as said:
        words = said.read()
    if status == should and began == (should != 120) and "not in a state" not in words:
        return ""
    late = status in {COMMANDS_OWN: (120, 122, None), 122: (120,)}.get(should, ())
    print(f"{' '.join(kinds)}: {status}, not {should}; began: {began}; {words}", flush=True)
    return "late" if late and began == (status != 120) else "wrong"


async def run_all(program, folder, todo):
    """Those of the combinations that did not end as they should, with what judge() says."""
    pool = Pool(program, folder)
    for path in itertools.chain(*pool.sockets.values()):
        await until(lambda p=path: os.path.exists(p) or "relay" in p or "none" in p)
    for _, relay in pool.relays:
        await relay.serve()
    await asyncio.sleep(TTL + 1)  # a server that was just started does not vote
    pool.signal("stopped", signal.SIGSTOP)
    stdin, stdin_writer = os.pipe()
    belays = []
    for number, kinds in enumerate(todo):
        belays.append((number, kinds, start_belay(pool, number, kinds, stdin)))
        await asyncio.sleep(0.01)  # the relays go on meanwhile
    os.close(stdin)

    def started(number, _, belay):
        return belay.poll() is not None or os.path.exists(f"{pool.folder}/began-{number}")

    await until(lambda: all(started(*one) for one in belays))
    await asyncio.sleep(TTL / 2)  # renewed: all that are there have granted it
    pool.fail()
    await asyncio.sleep(TTL + 1)  # all losses are reported by then
    os.close(stdin_writer)
    await until(lambda: all(one[2].poll() is not None for one in belays))
    verdicts = [(one[1], judge(pool, *one)) for one in belays]
    for *_, belay in belays:
        belay.kill()
    pool.end()
    return [one for one in verdicts if one[1] != ""]


async def main():
    """What was late is run once more, alone."""
    todo = list(combinations())
    n = len(todo)
    for attempt in "first", "second":
        folder = f"{sys.argv[2]}/{attempt}"
        os.mkdir(folder)
        bad = await run_all(sys.argv[1], folder, todo)
        todo = [kinds for kinds, _ in bad]
        if not bad or any(verdict == "wrong" for _, verdict in bad):
            break
    print(f"{n} combinations, {len(bad)} wrong", flush=True)
    os._exit(1 if bad else 0)  # with all connections that are open


asyncio.run(main())
