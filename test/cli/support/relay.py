#!/usr/bin/env python3
"""relay.py SOCKET SERVER [SECONDS]: relays from clients of the path SOCKET to the path SERVER.

While it is stopped, it passes no bytes, as in a partitioned network. In the replies the server's
clock is SECONDS ahead, or behind if they are negative.
"""

import re
import select
import socket
import sys

TIME = re.compile(rb"\*2\r\n\$10\r\n(\d{10})\r\n(?=\$[1-6]\r\n)")


def shift(reply):
    return b"*2\r\n$10\r\n%d\r\n" % (int(reply[1]) + int(sys.argv[3]))


def unix(call, path):
    end = socket.socket(socket.AF_UNIX)
    getattr(end, call)(path)
    return end


def hand_on(source, target, is_server):
    """Whether there was something to hand on."""
    try:
        data = source.recv(65536)
        if is_server and len(sys.argv) > 3:
            data = TIME.sub(shift, data)
        target.sendall(data)
        return data != b""
    except OSError:
        return False


def main():
    listener = unix("bind", sys.argv[1])
    listener.listen(64)
    other, servers = {}, set()
    while True:
        for end in select.select([listener, *other], [], [])[0]:
            if end is listener:
                near, far = listener.accept()[0], unix("connect", sys.argv[2])
                other[near], other[far] = far, near
                servers.add(far)
            elif end in other and not hand_on(end, other[end], end in servers):
                for gone in end, other.pop(end):
                    other.pop(gone, None)
                    servers.discard(gone)
                    gone.close()


main()
