"""Starts `leveret serve` as the attack wants it: `launch.py STACKS CANARY serve ...`.

SIGUSR2 writes where every thread is to the file STACKS. CANARY is "" or one of CANARIES: a broker that is deliberately wrong, in which the
attack has to find the fault, or it proves nothing.
"""

import faulthandler
import os
import signal
import sys
import time

from leveret.core.broker import route_cache
from leveret.tools import cli, serve

AFTER_S = 5  # a canary begins to sing then
VICTIM = "honest.work"


def dies(server, count):
    """An exception in the loop."""
    raise RuntimeError("a canary in the loop")


def stalls(server, count):
    """The loop is held for two seconds of CPU, once."""
    ends = time.process_time() + 2  # twice what a run may see (director.STALL_CPU_S): five took a minute of a busy machine
    while count == 1 and time.process_time() < ends:
        pass


def leaks(server, count, kept=[]):  # noqa: B006 - it is to be kept
    """Memory grows."""
    if len(kept) < 150:
        kept.append(b"\x01" * (4 << 20))


def tells_tracebacks(server, count):
    """Somebody prints an exception and goes on."""
    if count == 1:
        print("Traceback (most recent call last):\n  a canary", file=sys.stderr, flush=True)


def cuts_off(server, count):
    """Somebody honest is cut off, once."""
    if count == 1:
        for connection in list(server.broker.connections):
            if connection.user is not None and connection.user.name == "honest":
                connection.close("a canary")


def loses(server, count, taken={}):  # noqa: B006 - it is to be kept
    """For a while what comes for a queue is confirmed and dropped."""
    broker = server.broker
    if count == 1:
        taken[VICTIM] = broker.queues.pop(VICTIM)
    elif count == 20:
        broker.queues.update(taken)
    route_cache.forget(broker.tables)


def fills_the_log(server, count):
    """A sentence in every round."""
    print("a canary\n" * 100, file=sys.stderr)


def keeps_messages(server, count):
    """Records of messages that are nobody's."""
    if count < 4:
        server.broker.tables.new_message(b"\x00\x00", 0, 0, 0)


CANARIES = {each.__name__: each for each in (dies, stalls, leaks, tells_tracebacks, cuts_off, loses, fills_the_log, keeps_messages)}


def sing(canary):
    """Let a canary work in every step of the server from AFTER_S on."""
    step, began, calls = serve.Server.step, time.monotonic(), [0]

    def wrong(server):
        if time.monotonic() - began > AFTER_S:
            calls[0] += 1
            canary(server, calls[0])
        return step(server)

    serve.Server.step = wrong


def main():
    """Sing, and serve."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR2, file=os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), all_threads=True)
    if sys.argv[2]:
        sing(CANARIES[sys.argv[2]])
    return cli.main(sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
