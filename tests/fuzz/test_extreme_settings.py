"""Configuration, definitions files and URLs made of extremes and random values (extremes.py): each is taken, or refused with a sentence
(tools/config.py, tools/definitions.py, tools/address.py, ports/url.py); what is taken works in a broker that goes on.

LEVERET_EXTREMES=10000 pytest tests/fuzz/test_extreme_settings.py    so many of each
"""

import argparse
import json
import random

import cases
import extremes
import pytest
from test_extremes import INPUTS, SEED, document

from leveret.core.errors import ProtocolError
from leveret.core.limits import ROWS, Limits
from leveret.core.queue import rules
from leveret.ports.bridge import settings as bridge_settings
from leveret.ports.bridge.bridges import Bridges
from leveret.ports.url import read_url
from leveret.tools import address, config, data, definitions
from leveret.tools.usage import UsageError

SOUND = {
    "listen": ('["amqp://127.0.0.1:0"]', "[]"),
    "anonymous": ('"u"', '""'),
    "name": ('"u"', '"b"'),
    "password": ('"p"',),
    "tags": ('["management"]', "[]"),
    "configure": ('".*"', '""'),
    "write": ('"^a"',),
    "read": ('""',),
    "pattern": ('"^q"',),
    "definition": ("{max-length = 5}",),
    "priority": ("0",),
    "apply-to": ('"queues"',),
    "directory": ('"/nonexistent"',),
    "sync": ('"batch"', '"each"'),
    "batch_ms": ("5",),
    "disk_max": ('"1G"', "1073741824"),
    "gateway": ('"g"',),
    "queue": ('"q"',),
    "stream": ('"s"',),
    "upstream": ('"amqp://127.0.0.1:1"', '["amqps://h/?ca=x"]'),
    "exchange": ('"x"', '""'),
    "direction": ('"up"', '"down"'),
    "headers": ('{a = "{key}"}',),
    "backlog_full": ('"wait"', '"drop-oldest"'),
    "backlog_age_max": ('"7D"',),
}
TABLES = {
    "[limits]": tuple(row[0] for row in ROWS),
    "[data]": data.KEYS,
    "[[user]]": tuple(row[0] for row in config.USER.rows),
    "[[policy]]": tuple(row[0] for row in config.POLICY_TABLE.rows),
    "[[bridge]]": tuple(row[0] for row in bridge_settings.ROWS),
    "[board]": ("board",),
}
NEEDED = {
    "[[user]]": ("name",),
    "[[policy]]": ("name", "pattern", "definition"),
    "[[bridge]]": ("name", "gateway", "queue", "exchange", "upstream"),
}


ROOM = {"name_size_max": 255, "argument_size_max": 4096, "policy_count_max": 64, "user_count_max": 64, "send_buffer_size": 4096}


class Out:
    """A dial to a place that is not there."""

    place = "nowhere"
    pipe = None

    def begin(self):
        """Nothing."""

    def finish(self, loop, client):
        raise OSError("the cable is out")

    def failure(self):
        return ""

    def login(self):
        return {}


def toml(source):
    """A configuration file: known settings, most tables with what they need, values that are right and that are not."""
    lines = []
    for key in ("listen", "anonymous", "colour"):
        if source.random() < 0.2:
            lines.append(f"{key} = {value(source, key)}")
    for head, keys in TABLES.items():
        for _ in range(source.choice((0, 0, 1, 1, 2)) if head.startswith("[[") else source.choice((0, 1))):
            given = {key: source.choice(SOUND[key]) for key in NEEDED.get(head, ())}
            for _ in range(source.choice((0, 0, 0, 1, 3))):
                key = source.choice(keys) if source.random() < 0.95 else "colour"
                given[key] = value(source, key)
            lines.append(head)
            lines += [f"{key} = {text}" for key, text in given.items()]
    if source.random() < 0.03:
        lines.append(
            source.choice(("a = " + "[" * 5000, "a = " + "9" * 5000, "[", "= 5", "limits = 5", "user = 5", "[[data]]", "[user]", "\0"))
        )
    return "\n".join(lines)


def value(source, key):
    if key in SOUND and source.random() < 0.5:
        return source.choice(SOUND[key])
    if key in ("upstream", "listen") and source.random() < 0.5:
        made = extremes.toml_text(extremes.url(source))
        return made if key == "upstream" and source.random() < 0.5 else f"[{made}]"
    return extremes.toml_value(source)


def options(path):
    """The command line of a `leveret serve --config`."""
    return argparse.Namespace(config=path, memory=False, data=None, **{name: None for name in data.KEYS if name != "directory"})


def configured(path, broker):
    """What `leveret serve` reads of a file, and the broker's part of it in use."""
    _, limits = config.load(path)
    config.access(path, Limits(**dict(cases.BOARD)))
    config.remarks(path)
    chosen = config.kept(options(path))
    if chosen is not None:
        chosen.check(limits)
    for policy in config.policies(path):
        try:
            broker.policies.set(broker, policy)
        except ProtocolError:
            pass
    said = []
    bridges = Bridges(None, broker, config.bridges(path), said.append, lambda url: Out())
    for bridge in bridges.bridges:
        for _ in range(3):
            assert bridge.step() in (False, True)
        assert bridge.counters["internal_errors"] == 0, said
        json.dumps(bridge.status())
    assert not [sentence for sentence in said if "cannot be started" in sentence], said


def test_a_configuration_is_taken_or_refused_with_a_sentence(tmp_path):
    path = str(tmp_path / "leveret.toml")
    taken = 0
    for index in range(INPUTS):
        text = toml(random.Random("%d settings %d" % (SEED, index)))
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        broker = cases.new_broker()
        try:
            configured(path, broker)
            taken += 1
        except UsageError as error:
            assert str(error) and "Traceback" not in str(error) and "invalid literal" not in str(error), (index, text)
        except Exception as error:  # whatever is raised is the finding, with its seed
            raise AssertionError("input %d (LEVERET_FUZZ_SEED=%d): %r in\n%s" % (index, SEED, error, text)) from error
        if index % 25 == 0:
            cases.Healthy(broker).is_served()
            assert broker.counters["internal_errors"] == 0, (index, text)
    assert taken * 20 > INPUTS, "the inputs are refused before anything is reached: %d of %d were taken" % (taken, INPUTS)


def test_a_definitions_file_is_loaded_or_refused_with_sentences(tmp_path):
    path = str(tmp_path / "definitions.json")
    broker = cases.new_broker(**ROOM)
    for index in range(INPUTS):
        source = random.Random("%d definitions file %d" % (SEED, index))
        given = document(source) if source.random() < 0.97 else extremes.json_value(source)
        octets = json.dumps(given, default=str, ensure_ascii=source.random() < 0.5).encode("utf-8", "surrogatepass")
        if source.random() < 0.02:
            octets = source.choice((b"", b"\xff", b"[" * 20000, b"1" * 5000, octets[:-1]))
        with open(path, "wb") as file:
            file.write(octets)
        try:
            definitions.load_into(broker, definitions.read(path))
        except UsageError as error:
            assert str(error), (index, octets)
        except Exception as error:  # whatever is raised is the finding, with its seed
            raise AssertionError("input %d (LEVERET_FUZZ_SEED=%d): %r in %r" % (index, SEED, error, octets)) from error
        broker.tick(broker.now + 60, cases.SECONDS)
        broker.run()
        if index % 25 == 0:
            cases.Healthy(broker).link.end()
            broker = cases.new_broker(**ROOM)
        assert broker.counters["internal_errors"] == 0, (index, octets)


@pytest.mark.parametrize("read, error", [(address.parse, UsageError), (read_url, ValueError)], ids=["listener", "client"])
def test_a_url_is_taken_or_refused_with_a_sentence(read, error):
    taken = 0
    for index in range(10 * INPUTS):  # each costs little
        url = extremes.url(random.Random("%d url %d" % (SEED, index)))
        try:
            read(url)
            taken += 1
        except error as told:
            assert "invalid literal" not in str(told) and "codec" not in str(told), (index, url, told)
        except Exception as raised:  # whatever is raised is the finding, with its seed
            raise AssertionError("input %d (LEVERET_FUZZ_SEED=%d): %r of %r" % (index, SEED, raised, url)) from raised
    assert taken


def test_the_names_that_are_tried_are_those_that_there_are():
    """A setting or an argument that is added is tried from then on."""
    assert {row[0] for row in rules.ARGUMENTS} <= set(__import__("test_extremes").QUEUE_NAMES)
