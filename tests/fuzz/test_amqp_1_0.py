"""AMQP 1.0: sequences out of the grammar, whole, wounded and recombined, over a session that lives: the laws of cases.py hold, and all
forms of the engine say the same. Recorded seeds run each time; LEVERET_FUZZ_SEED=N and LEVERET_FUZZ_ROUNDS=N as for 0-9-1.
A case that breaks a law is kept in crashes_1_0/, made small, and replayed by every later run.
"""

import glob
import hashlib
import json
import os
import random
import time

import cases
import cases_1_0
import grammar_1_0
import pytest
from sequences import mutate

from leveret import c_accel
from leveret.core.amqp_1_0 import types
from leveret.core.broker import engine

SEED = int(os.environ.get("LEVERET_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
ROUNDS = int(os.environ.get("LEVERET_FUZZ_ROUNDS", "1"))
RECORDED = range(60)
CRASHES = os.path.join(cases.HERE, "crashes_1_0")
FORMS = (engine.Plain, c_accel.Engine) if c_accel.lib is not None else (engine.Plain,)
WOUNDS = {"whole": 0.0, "wounded": 0.1}


def steps_of(source, wounds):
    """A case: mostly what makes sense, now and then a frame of the grammar, or one of an earlier step with some octets that are others."""
    steps, given = [], []
    for _ in range(source.choice((10, 30, 60))):
        draw = source.random()
        if draw < 0.4:
            fields = {"cut": source.choice((700, 700, 60))}
            if source.random() < 0.3:
                fields["settled"] = source.random() < 0.6
            for name, chance in (("more", 0.08), ("aborted", 0.03), ("batchable", 0.1)):
                if source.random() < chance:
                    fields[name] = True
            if source.random() < 0.15:
                fields["work"] = source.randrange(3)
            steps.append(["send", source.choice((0, 0, 0, 1, 2, 2)), grammar_1_0.message(source).hex(), fields])
        elif draw < 0.55:
            steps.append(["credit", source.choice((4, 5, 6)), source.choice((0, 1, 6, 20)), source.random() < 0.2, source.random() < 0.2])
        elif draw < 0.75:
            count = source.choice((0, 0, 0, 2))
            steps.append(["settle", source.randrange(20), source.randrange(len(cases_1_0.STATES)), count, source.random() < 0.7])
        elif draw < 0.83:
            steps.append(["work", source.randrange(12)])
        elif draw < 0.88:
            steps.append(["tick", source.choice((1, 6, 600, 2500))])
        else:
            octets = source.choice(given) if given and source.random() < 0.3 else grammar_1_0.some_frame(source)
            given.append(octets)
            if source.random() < wounds:
                octets = mutate(source, octets)
            steps.append(["give", octets.hex(), source.choice((0, 0, 1, 7))])
    return steps


def checked(steps):
    """Run a case in all forms; one that breaks a law is kept, made small, and its file named."""
    try:
        return cases_1_0.same(steps, FORMS)
    except Exception as error:  # whatever is raised is the finding
        steps, error = shrunk(steps, error)
        octets = (json.dumps(steps) + "\n").encode()
        path = os.path.join(CRASHES, hashlib.sha256(octets).hexdigest()[:16] + ".json")
        os.makedirs(CRASHES, exist_ok=True)
        with open(path, "wb") as file:
            file.write(octets)
        raise AssertionError("kept as %s: %s: %s" % (path, type(error).__name__, error)) from error


def shrunk(steps, error):
    """The case without the steps that its failure does not need, and that failure; within some seconds."""
    limit = time.monotonic() + cases.SHRINK_S
    size = len(steps) // 2
    while size and time.monotonic() < limit:
        at = 0
        while at < len(steps) and time.monotonic() < limit:
            fewer = steps[:at] + steps[at + size :]
            try:
                cases_1_0.same(fewer, FORMS)
            except Exception as found:  # whatever is raised is the finding
                steps, error = fewer, found
            else:
                at += size
        size //= 2
    return steps, error


@pytest.mark.parametrize("path", sorted(glob.glob(os.path.join(CRASHES, "*.json"))), ids=os.path.basename)
def test_what_once_broke_a_law_keeps_it_now(path):
    with open(path, encoding="utf-8") as file:
        cases_1_0.same(json.load(file), FORMS)


@pytest.mark.parametrize("kind", WOUNDS)
@pytest.mark.parametrize("which", ["recorded", "other"])
def test_sequences_of_the_grammar(kind, which):
    print("LEVERET_FUZZ_SEED=%d" % SEED)
    seen = {}
    for number in RECORDED if which == "recorded" else range(40 * ROUNDS):
        source = random.Random("%s %s %d" % (kind, "" if which == "recorded" else SEED, number))
        said, states, _ = checked(steps_of(source, WOUNDS[kind]))
        for each in said:
            seen[each[0]] = seen.get(each[0], 0) + 1
        for state in states.values():
            name = None if state is None else state[0]
            seen[name] = seen.get(name, 0) + 1
    wanted = ("transfer", "accepted", "declared", "detach", "transactional-state", "rejected", "end")
    assert which == "other" or min(seen.get(each, 0) for each in wanted) > 2, seen


def test_any_value_is_read_to_its_end_or_refused_in_words_and_is_written_as_it_was_read():
    """Part 1: an encoder of its own in every encoding, whole and cut at every octet; what is read is the same behind being written."""
    source = random.Random("values %d" % SEED)
    print("LEVERET_FUZZ_SEED=%d" % SEED)
    read = 0
    for _ in range(3000 * ROUNDS):
        octets = grammar_1_0.any_value(source)
        found, error = cases_1_0.readable(octets)
        assert found is None or found[1] == len(octets), octets.hex()
        assert found is not None or error, octets.hex()
        if found is not None:
            read += 1
            written = types.encode(found[0])
            assert len(written) <= len(octets) or "array" in repr(found[0]), octets.hex()  # elements get octets of their own
            assert types.encode(types.decode(written, 0, len(written))[0]) == written, octets.hex()
            for size in range(min(len(octets), 40)):
                assert cases_1_0.readable(octets[:size])[0] is None, octets[:size].hex()
        wounded = mutate(source, octets)
        found, error = cases_1_0.readable(wounded)
        assert (found is None) == bool(error)
    assert read > 2000 * ROUNDS, read
