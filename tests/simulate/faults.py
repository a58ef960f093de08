"""A fault at each call: `python tests/simulate/faults.py [--scenario NAME] [--at N] [--every]`.

`Faults` wraps the functions of core/ and raises at the n-th call since it was armed. A scenario sets a broker up, is armed, and works; a
run with n = 1, 2, 3 ... until one ends without a fault tries every call, as SQLite does. After each: the broker serves others, nothing
that was confirmed is lost, every record has an owner (invariants.py), and the next start from the log is clean.

Not wrapped (FLAT) is what can not raise, because it only computes on flat records, allocates nothing and reads nothing of a peer's; and the
guards themselves and what is called first thing in one (tests/unit/test_poison has those).
"""

import argparse
import functools
import importlib
import os
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "unit")]

import scenarios  # noqa: E402 - the path above has to be set first
from model import Wrong  # noqa: E402 - the path above has to be set first

import leveret.core  # noqa: E402 - the path above has to be set first

ERRORS = (ValueError, MemoryError, OSError)

LEFT_OUT = (
    "access.login",
    "access.passwords",
    "access.permissions",
    "access.sasl",
    "amqp_0_9.client.",
    "amqp_0_9.frame",
    "amqp_0_9.handshake",
    "amqp_0_9.hot_in",
    "amqp_0_9.hot_out",
    "amqp_0_9.hot_row",
    "amqp_0_9.sasl",
    "amqp_0_9.spec_0_9_1",
    "states",
    "bridge.backoff",
    "bridge.bucket",
    "bridge.mover",
    "bridge.ranges",
    "broker.engine",
    "broker.publish",
    "broker.route_cache",
    "errors",
    "exchange.chance",
    "exchange.registry",
    "limits",
    "log.chunk_index",
    "log.flat_records",
    "log.message_record",
    "log.settled_positions",
    "memory.hot",
    "memory.hot_quicker",
    "memory.invariants",
    "memory.layout",
    "memory.receive_buffer",
    "memory.returned",
    "memory.send_buffer",
    "message.type_words",
    "parts",
    "serial_link.",
    "shim",
    "version",
    "wire.",
)
"""Modules of core/ by their room; with a dot at the end: all modules of the room."""

FLAT = {
    "Queue": (
        "head",
        "pop",
        "unlink",
        "link",
        "push",
        "drop",
        "is_later",
        "update_plain",
        "message_count",
        "octets",
        "is_paging",
        "plain_in_log",
        "unsettled_count",
        "over_share",
        "log_position",
        "__init__",
    ),
    "Stream": (
        "plain_in_log",
        "message_count",
        "octets",
        "is_paging",
        "must_page",
        "held_from",
        "readable_offset",
        "next_offset",
        "withdraw",
        "__init__",
    ),
    "Tables": ("has_room", "blocks_for", "release", "size_of", "lend", "has_spare", "append", "copy_content", "new_message"),
    "Consumers": ("come_back", "end_consumer", "__init__"),
    "Topology": ("__init__",),
    "memory.tables": ("clear",),
    "recovery.opening": ("make_durable",),
    "log.definition_records": ("restore", "restore_queue", "of_kind", "waits_for_other", "gone", "restore_one"),
    "management.requests": ("answer", "carried_out", "perform", "failure", "faulty", "let_go", "require_tag"),
    "Answer": ("__init__",),
    "recovery.recovery": ("recover", "report", "told_of_lost", "told_of_orphans", "aside"),
    "recovery.first_pass": ("first_pass", "read_heads", "records", "note_end", "note_lost", "discard", "is_orphan", "read_record"),
    "recovery.second_pass": ("restore", "fill", "empty_queues", "keep_positions", "put_message"),
    "LogContents": ("__init__", "fault", "next_number"),
    "Reader": ("__init__", "fill", "next", "stop", "head"),
    "Damage": ("__init__",),
    "log.segments": ("record", "ungrouped"),
    "amqp_0_9.deliver": ("begin",),
    "Places": ("attach", "detach"),
    "Broker": (
        "manage",
        "tick",
        "pass_time",
        "run",
        "has_entries",
        "kept_aside",
        "published",
        "work",
        "activate",
        "has_active",
        "discard",
        "send_dead_letter",
    ),
    "Connection": (
        "writable",
        "received",
        "pending",
        "sent",
        "tick",
        "broke",
        "fail",
        "finish",
        "sessions",
        "guarded",
        "process",
        "resume",
        "go_on",
        "end",
        "gives_back",
        "step",
        "serve",
        "sniff",
        "discard",
        "ignore",
        "apologize",
        "stop",
        "lose",
        "release",
    ),
    "Guard": ("trouble", "rescue", "put_away", "entries_aside", "queue_failed", "job_failed", "resume", "tick"),
    "Journal": ("__init__", "run_guarded", "withdraw", "settling", "moved_out", "touch", "durable", "last", "position"),
    "Transaction": ("give_back", "took"),
    "Outgoing": ("active", "abandon"),
    "Segment": ("__init__",),
    "Gathered": ("__init__", "empty"),
    "Settlements": ("__init__",),
    "Session": ("keep",),
    "Waiting": ("hand_over", "restore"),
    "Rule": ("place", "around", "put", "leave"),
    "Pager": ("__init__",),
    "ReadBack": ("__init__",),
    "WholeRecords": ("__init__",),
    "Log": ("__init__", "adopt", "see_largest", "begin", "crashed", "landed", "synced_once", "is_busy", "troubled", "current", "size"),
}
"""Class, or module by its room -> functions that are not wrapped."""


class Faults:
    """`at`: the number of the call that raises `error`; 0: none. `raised`: where it did."""

    def __init__(self):
        self.kept = []
        self.armed = False
        self.count = self.at = 0
        self.error = ValueError
        self.raised = None
        self.stuck = None
        self.trail = None  # a list: collects (function, caller) of each call

    def arm(self, at, error, stuck=None):
        """Count from here on. `stuck`: a function of which every call raises."""
        self.armed, self.count, self.at, self.error, self.raised, self.stuck = True, 0, at, error, None, stuck

    def install(self):
        """Wrap everything."""
        modules = [importlib.import_module(name) for name in names()]
        swapped = {}
        for module in modules:
            if is_left_out(module.__name__):
                continue
            for name, item in list(vars(module).items()):
                place = place_of(module.__name__)
                if isinstance(item, types.FunctionType) and item.__module__ == module.__name__ and name not in FLAT.get(place, ()):
                    swapped[item] = self.wrapped(item, "%s.%s" % (place, name))
                elif isinstance(item, type) and item.__module__ == module.__name__:
                    self.wrap_class(item)
        for module in modules:
            for name, item in list(vars(module).items()):
                if isinstance(item, types.FunctionType) and item in swapped:
                    self.kept.append((module, name, item))
                    setattr(module, name, swapped[item])
                elif isinstance(item, dict) and not name.startswith("__"):
                    for key, each in list(item.items()):
                        if isinstance(each, types.FunctionType) and each in swapped:
                            self.kept.append((item, key, each))
                            item[key] = swapped[each]

    def wrap_class(self, class_):
        """Wrap the methods of a class."""
        for name, item in list(vars(class_).items()):
            if name in FLAT.get(class_.__name__, ()):
                continue
            if isinstance(item, types.FunctionType):
                self.kept.append((class_, name, item))
                setattr(class_, name, self.wrapped(item, "%s.%s" % (class_.__name__, name)))
            elif isinstance(item, staticmethod):
                self.kept.append((class_, name, item))
                setattr(class_, name, staticmethod(self.wrapped(item.__func__, "%s.%s" % (class_.__name__, name))))

    def remove(self):
        """Everything as it was."""
        for owner, name, item in reversed(self.kept):
            if isinstance(owner, dict):
                owner[name] = item
            else:
                setattr(owner, name, item)
        self.kept = []

    def wrapped(self, function, name):
        """The function, which raises when its call is the one."""

        @functools.wraps(function)
        def calls(*given, **named):
            if self.armed:
                self.count += 1
                if self.trail is not None:
                    self.trail.append((name, sys._getframe(1).f_code.co_name))
                if self.count == self.at or name == self.stuck:
                    self.raised = name
                    raise self.error("a fault at call %d, %s" % (self.count, name))
            return function(*given, **named)

        return calls


def names():
    """All modules of core/."""
    root = list(leveret.core.__path__)[0]
    return [
        ".".join(("leveret", "core", *os.path.relpath(os.path.join(folder, name), root)[:-3].split(os.sep)))
        for folder, _, names in os.walk(root)
        for name in sorted(names)
        if name.endswith(".py")
    ]


def place_of(name):
    """A module's room and name: "log.segments" of leveret.core.log.segments."""
    return name[len("leveret.core.") :]


def is_left_out(name):
    """True for a module whose functions are not wrapped."""
    place = place_of(name)
    return place in LEFT_OUT or place.startswith(tuple(each for each in LEFT_OUT if each.endswith(".")))


def unknown():
    """Names in LEFT_OUT and FLAT that stand for nothing in core/ any more: what they were for is wrapped all the same."""
    owners = {place_of(name): set(vars(importlib.import_module(name))) for name in names()}
    wrong = [each for each in LEFT_OUT if each not in owners and not any(each[-1] == "." and place.startswith(each) for place in owners)]
    for module in [importlib.import_module(name) for name in names()]:
        for name, item in vars(module).items():
            if isinstance(item, type):
                owners.setdefault(name, set()).update(vars(item))  # several files have a class Rule
    for owner, functions in FLAT.items():
        wrong += ["%s.%s" % (owner, name) for name in functions if name not in owners.get(owner, ())]
    return wrong


def trail(faults, name, keeps):
    """(function, caller) of each call of a scenario."""
    faults.trail = []
    try:
        scenarios.run(name, keeps, lambda: faults.arm(0, ValueError), faults)
        return faults.trail
    finally:
        faults.trail = None


def some(faults):
    """The calls that are worth a fault where there is no time for all: (scenario, keeps, n) of the first call of each function from each
    other with a log, and of the last without; of a function that only one of them calls that one's."""
    first, last = {}, {}
    for keeps in (True, False):
        for name in sorted(scenarios.SCENARIOS):
            for at, place in enumerate(trail(faults, name, keeps)):
                first.setdefault(place, (name, keeps, at + 1))
                last[place] = (name, keeps, at + 1)
    return sorted(set(first.values()) | set(last.values()))


def one(faults, name, keeps, number, error, stuck=None):
    """One run: None, or (n, where, error, what is wrong)."""
    faults.raised = None
    try:
        scenarios.run(name, keeps, lambda: faults.arm(number, error, stuck), faults)
    except Exception as found:  # whatever is raised is the finding
        sentence = str(found) if isinstance(found, Wrong) else "%s: %s" % (type(found).__name__, found)
        return number, faults.raised, error.__name__, sentence[:300]
    finally:
        faults.armed = False
    return None


def always(faults, name, keeps, error=ValueError):
    """One scenario with each of its functions raising at every call: (runs, what was wrong)."""
    places = sorted({place[0] for place in trail(faults, name, keeps)})
    return len(places), [found for found in [one(faults, name, keeps, 0, error, place) for place in places] if found]


def every(faults, name, keeps, at=None, errors=None):
    """One scenario with a fault at every call: (runs, what was wrong: [(n, where, error, sentence)])."""
    wrong = []
    number = at or 1
    while True:
        tried = 0
        for error in errors or (ERRORS[number % len(ERRORS)],):
            found = one(faults, name, keeps, number, error)
            if found:
                wrong.append(found)
            tried += faults.raised is not None
        if at or not tried:
            return number, wrong
        number += 1


def main():
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scenario", choices=sorted(scenarios.SCENARIOS))
    parser.add_argument("--at", type=int, help="this call alone, with the trace of what is wrong")
    parser.add_argument("--every", action="store_true", help="each call with each kind of error, not with one of them")
    parser.add_argument("--some", action="store_true", help="the calls that the tests try")
    parser.add_argument("--always", action="store_true", help="each function raises at every call")
    parser.add_argument("--memory", action="store_true", help="without a log alone")
    parser.add_argument("--log", action="store_true", help="with a log alone")
    parser.add_argument("--error", choices=[each.__name__ for each in ERRORS])
    given = parser.parse_args()
    faults = Faults()
    faults.install()
    errors = ERRORS if given.every else None
    if given.error:
        errors = [each for each in ERRORS if each.__name__ == given.error]
    failed = 0
    if given.some:
        places = some(faults)
        print("%d calls" % len(places), flush=True)
        for at, (name, keeps, number) in enumerate(places):
            found = one(faults, name, keeps, number, (errors or ERRORS)[at % len(errors or ERRORS)])
            if found:
                failed += 1
                print(name, "log" if keeps else "memory", "at %d, %s, %s: %s" % found, flush=True)
        print("%d wrong; %.1f s of CPU" % (failed, time.process_time()))
        return 1 if failed else 0
    for name in [given.scenario] if given.scenario else sorted(scenarios.SCENARIOS):
        for keeps in (False, True):
            if keeps and given.memory or not keeps and given.log:
                continue
            if given.always:
                runs, wrong = always(faults, name, keeps, errors[0] if errors else ValueError)
            else:
                runs, wrong = every(faults, name, keeps, given.at, errors)
            print("%-12s %-9s %5d calls, %d wrong" % (name, "log" if keeps else "memory", runs, len(wrong)), flush=True)
            for each in wrong:
                print("    at %d, %s, %s: %s" % each)
            failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
