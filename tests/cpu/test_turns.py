"""No peer holds the loop: the CPU time of each single call (received, sent, run, tick) of every scene of scenes.py, at a gateway's limits.

With the C module no call may take more than LIMIT_MS, but for the rows of OVER, which say how much and why. As plain Python a sixteenth of
the load is held to the same, but for PLAIN_OVER. The time is the thread's own, a row that is over is done again up to twice, and the limit
grows with how slow the machine is just then (`slowness`). The table has half of n beside n where a call takes a while: what grows
faster than n stands out.
"""
import pytest
from leveret import c_accel
from leveret.c_accel import runs

import scenes
from crowd import Crowd, slowness

LIMIT_MS = 20
ATTEMPTS = 3

# What takes longer in one call, and why it does.
OVER = {
    "basic.nack, one by one at random, requeued": (200, "each finds its place in the queue from where the last one went: 7 us with 20,000"),
    "basic.recover, a queue with rules": (500, "100,000 messages, each looked at by the rules: 2 us each"),
    "tx.commit of publishes": (250, "20,000 publishes take effect together: 6 us each"),
    "tx.commit of acknowledgements": (150, "20,000 acknowledgements take effect together: 4 us each"),
    "publish, delivery, return: x-max-priority": (300, "20,000 messages come back at once: 7 us each"),
    "publish, delivery, return: x-last-value-key": (90, "20,000 messages come back at once"),
    "publish, delivery, return: x-deduplication": (90, "20,000 messages come back at once"),
    "publish, delivery, return: x-single-active-consumer": (90, "20,000 messages come back at once"),
    "publish, delivery, return: x-delivery-limit": (90, "20,000 messages come back at once"),
    "publish, delivery, return: x-delayed-retry-min": (90, "20,000 messages come back at once"),
    "publish, delivery, return: x-message-ttl and dead letters": (90, "20,000 messages come back at once"),
    "basic.nack, all at once, to dead letters": (80, "20,000 messages leave the channel at once; their letters go 100 a round"),
    "a policy of a lifetime comes to a long queue": (40, "100,000 deadlines are written"),
    "delivery to many consumers, all without credit": (80, "4,000 consumers with priorities are asked for each message"),
    "publish, delivery, return: x-group-key, many groups": (60, "8,192 messages come back at once: 2.5 us each"),
    "basic.cancel of many consumers": (100, "4,000 consumers in the lists of a channel and a queue"),
    "a stream: publish, read, settle": (60, "an acknowledgement of 20,000 at once: 2 us each"),
    "exchange.delete with bindings": (50, "12,000 bindings: 1.3 us each"),
    "queue.delete with bindings": (50, "12,000 bindings: 1.5 us each"),
    "publish: topic, patterns of # and *": (45, "300 patterns, all that one connection may bind of these, a key of 120 words that is new"),
    "basic.cancel, of many consumers beside what is unsettled": (90, "100,000 deliveries are gone over for each cancel"),
}

# The plain form takes a read of 256 KiB at once, 12,000 acknowledgements, and goes over deliveries in Python.
PLAIN_OVER = {
    "basic.ack, all at once": 60, "basic.ack, one by one, in order": 150, "basic.ack, one by one, at random": 200,
    "basic.ack, from the middle outwards": 200, "basic.nack, one by one at random, requeued": 150, "basic.nack, all at once, requeued": 80,
    "basic.nack, all at once, dropped": 80, "basic.recover": 80, "queue.purge": 80, "queue.delete, all ready": 80,
    "queue.delete, all unsettled": 80, "channel.close": 80, "connection.close": 80, "a connection that is lost": 80,
    "basic.cancel, of many consumers beside what is unsettled": 300, "channel.close with many consumers": 500,
    "publish, delivery, return: x-group-key, one group": 150,
    "publish, delivery, return: x-max-length": 80, "publish, delivery, return: x-max-priority": 60,
    "publish, delivery, return: x-delayed-retry-min": 60, "publish, delivery, return: x-delivery-limit": 60,
    "publish, delivery, return: x-message-ttl and dead letters": 60, "publish, delivery, return: x-single-active-consumer": 60,
    "basic.ack at a prefetch of the channel, many consumers": 200, "a stream: publish, read, settle": 80, "tx.commit of publishes": 60,
    "tx.commit of acknowledgements": 60, "all messages of a queue expire": 80, "basic.recover, a queue with rules": 80,
    "the first message with an expiration comes to a long queue": 40, "a policy of a small length comes to a long queue": 80,
    "confirms": 60, "delivery to many consumers of one queue": 40, "delivery to many consumers, all without credit": 60,
}


def milliseconds(form, function, n):
    """The longest call of a scene, and which it was."""
    crowd = Crowd(form)
    steps = function(crowd, n)
    next(steps)
    crowd.begin()
    for _ in steps:
        raise AssertionError("a scene has one yield")
    assert crowd.calls and not crowd.broker.counters["internal_errors"]
    return 1000 * crowd.worst, crowd.where


def measured(form, part, over):
    """Every scene with its n divided by `part`: (name, ms, limit, slowness). The growth is looked at where a call takes a while."""
    table = []
    print("%-60s %7s %9s %9s  longest call" % ("scene", "n", "n/2, ms", "n, ms"))
    for name, most, function in scenes.ROWS:
        n = max(most // part, 4)
        took, where = milliseconds(form, function, n)
        limit, slow = over.get(name, LIMIT_MS), slowness()
        for _ in range(ATTEMPTS - 1):
            if took <= limit * slow:
                break
            took, where = min((took, where), milliseconds(form, function, n))
            slow = max(slow, slowness())
        half = "%9.2f" % milliseconds(form, function, max(n // 2, 2))[0] if took > LIMIT_MS // 2 else ""
        print("%-60s %7d %9s %9.2f  %s%s" % (name, n, half, took, where, "" if limit == LIMIT_MS else ", may take %d" % limit), flush=True)
        table.append((name, took, limit, slow))
    return table


def judge(table):
    late = ["%s: %.1f ms of %d" % (name, took, limit) for name, took, limit, slow in table if took > limit * slow]
    assert not late, late


@pytest.mark.skipif(c_accel.lib is None, reason="a C compiler is not installed")
def test_no_call_takes_longer_than_its_turn_with_the_c_module():
    judge(measured(c_accel.Engine, 1, {name: OVER[name][0] for name in OVER}))


def test_no_call_takes_longer_than_its_turn_as_plain_python_with_a_sixteenth_of_the_load():
    judge(measured(runs.Engine, 16, PLAIN_OVER))


def test_the_rows_that_may_take_longer_are_scenes():
    names = [row[0] for row in scenes.ROWS]
    assert len(names) == len(set(names)) > 70
    assert [name for name in list(OVER) + list(PLAIN_OVER) if name not in names] == []
