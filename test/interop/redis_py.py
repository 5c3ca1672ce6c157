"""The other side of the interoperability test: redis-py's Lock, driven line by line.

redis_py.py URL KEY TTL; TTL is in seconds, 0 for none. It reads a word per line and answers each:

    try       acquire without waiting         yes, no
    wait      acquire within five seconds     yes, no
    release                                   released, not-owned, not-held
    extend    by ten seconds                  extended, not-owned, not-held
    owned     is it ours on the server?       yes, no
"""

import sys

import redis
from redis.exceptions import LockError, LockNotOwnedError
from redis.lock import Lock


def give_back(lock):
    lock.release()
    return "released"


def extend(lock):
    lock.extend(10)
    return "extended"


def answer(lock, word):
    actions = {
        "try": lambda: "yes" if lock.acquire(blocking=False) else "no",
        "wait": lambda: "yes" if lock.acquire(blocking=True, blocking_timeout=5) else "no",
        "release": lambda: give_back(lock),
        "extend": lambda: extend(lock),
        "owned": lambda: "yes" if lock.owned() else "no",
    }
    try:
        return actions[word]()
    except LockNotOwnedError:
        return "not-owned"
    except LockError:
        return "not-held"


def main(url, key, ttl):
    client = redis.Redis.from_url(url)
    lock = Lock(client, key, timeout=float(ttl) or None, sleep=0.02)
    for line in sys.stdin:
        print(answer(lock, line.strip()), flush=True)


main(*sys.argv[1:])
