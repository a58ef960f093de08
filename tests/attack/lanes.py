"""A lane: a process that runs the attacks of a schedule one behind the other, each with a connection of its own."""

import contextlib
import signal
import time
import traceback

import schedule
from peer import Attack, Gone, Over


def lane(state, events, began, rows):
    """A process that runs the attacks of one lane."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    table = schedule.attackers()
    for start, name, seconds, seed in rows:
        time.sleep(max(0, began + start - time.monotonic()))
        if state.stop.value:
            return
        attack = Attack(state.port, name, seed, seconds)
        events.put(("begin", time.monotonic(), name, seed))
        try:
            rounds(attack, table[name][1])
        except Exception:  # what it raised is the finding
            attack.finding("the attacker itself failed: " + traceback.format_exc())
        attack.close()
        events.put(("end", time.monotonic(), name, seed, dict(attack.counts), attack.findings))


def rounds(attack, function):
    """Again and again until the attack is over."""
    with contextlib.suppress(Over):
        while True:
            attack.check()
            try:
                attack.counts["rounds"] += 1
                function(attack)
            except Gone:
                if attack.counts["connections"] > 200 or attack.counts["not connected"]:
                    attack.pause(0.02)
            for peer in attack.peers[:-20]:
                peer.close()
