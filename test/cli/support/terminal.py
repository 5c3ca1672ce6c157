#!/usr/bin/env python3
"""Runs a command on a pseudo-terminal of 100 columns and 30 rows, as a person sees it.

terminal.py [--when TEXT --type KEYS | --when TEXT --size COLUMNSxROWS]... COMMAND [ARGUMENT]...:
when the command has written TEXT, KEYS are typed (^C is ctrl-C, ^Z is ctrl-Z), or the terminal gets
another size. Writes the command's output, and ends with its exit status, 128 + N if signal N killed
it; 99: it took too long.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LONGEST_S = 60


def read_arguments(arguments):
    steps = []
    while arguments and arguments[0] == "--when":
        steps.append((arguments[1].encode(), arguments[2], arguments[3]))
        arguments = arguments[4:]
    return steps, arguments


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def do(terminal, what, value):
    if what == "--size":
        resize(terminal, *map(int, value.split("x")))
    else:
        os.write(terminal, value.replace("^C", "\x03").replace("^Z", "\x1a").encode())


def watch(terminal, steps):
    """All that is written, to the end; None: it does not end."""
    seen, at, end = b"", 0, time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 1)
        if not ready:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # no process has it open any more
            part = b""
        if not part:
            return seen
        seen += part
        while steps and steps[0][0] in seen[at:]:
            text, what, value = steps.pop(0)
            at = seen.index(text, at) + len(text)
            do(terminal, what, value)
    return None


def main():
    steps, command = read_arguments(sys.argv[1:])
    child, terminal = pty.fork()
    if child == 0:
        resize(0, 100, 30)
        os.execvp(command[0], command)
    seen = watch(terminal, steps)
    if seen is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    sys.stdout.buffer.write(seen or b"")
    sys.stdout.flush()
    if seen is None:
        return 99
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


sys.exit(main())
