"""The arguments of `leveret bridge` one by one: what each takes, and the settings that they make (tools/bridge.py)."""

import argparse

import pytest

from leveret.tools import bridge
from leveret.tools.usage import UsageError

UP = ("--queue", "q", "--to", "amqp://u:p@up/", "--exchange", "e")


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    bridge.add_arguments(parser)
    return parser.parse_args(arguments)


def refused(kind, text):
    with pytest.raises(argparse.ArgumentTypeError) as told:
        kind(text)
    return str(told.value)


def test_a_prefetch_is_a_whole_number_from_1_to_4000():
    for text in ("1", "4000", "0017"):
        assert bridge.whole_number(text) == int(text)
    for text in ("0", "4001", "-1", "1.0", "", "²", "x"):
        assert refused(bridge.whole_number, text) == f"{text!r} is not a whole number from 1 to 4000"


def test_an_option_is_a_number_where_its_setting_takes_one_and_else_a_text():
    assert bridge.option("prefetch=5") == ("prefetch", 5)
    assert bridge.option("replay_messages_per_second=500") == ("replay_messages_per_second", 500)
    assert bridge.option("gateway=5") == ("gateway", "5") and bridge.option("gateway=a=b") == ("gateway", "a=b")
    assert bridge.option("prefetch=many") == ("prefetch", "many") and bridge.option("prefetch=1_0") == ("prefetch", "1_0")
    for text in ("prefetch", "nothing=5", "=5"):
        assert "is not NAME=VALUE with a NAME among name, " in refused(bridge.option, text)


def test_a_brokers_url_is_one():
    assert bridge.broker_url("amqp://u:p@host/") == "amqp://u:p@host/"
    assert "'http://host/' is not a broker's URL, as amqp://" in refused(bridge.broker_url, "http://host/")


def test_the_settings_are_those_of_the_arguments():
    made = bridge.settings_of(parsed(*UP, "--routing-key", "s.{key}", "--prefetch", "7", "--option", "stall_seconds=12.5"))
    assert (made.name, made.direction, made.queue, made.exchange, made.routing_key, made.prefetch) == (
        "bridge",
        "up",
        "q",
        "e",
        "s.{key}",
        7,
    )
    assert made.plain and made.stall_seconds == 12.5
    made = bridge.settings_of(parsed(*UP, "--gateway", "gw7", "--name", "n"))
    assert (made.name, made.gateway, made.plain) == ("n", "gw7", False)
    made = bridge.settings_of(parsed(*UP, "--down"))
    assert made.direction == "down" and not made.plain
    made = bridge.settings_of(parsed("--stream", "s", *UP[2:], "--gateway", "gw7"))
    assert (made.stream, made.plain) == ("s", False)


def test_what_does_not_go_together_is_told_with_the_way_to_the_help():
    with pytest.raises(UsageError, match="see leveret bridge --help"):
        bridge.settings_of(parsed("--queue", "q"))


def test_a_bridge_of_a_file_is_chosen_by_its_name(tmp_path):
    path = tmp_path / "broker.toml"
    text = '[[bridge]]\nname = "%s"\nqueue = "q"\nexchange = "e"\nupstream = ["amqp://u:p@up/"]\ngateway = "g-%s"\n'
    path.write_text(text % ("one", 1))
    assert bridge.settings_of(parsed("--config", str(path))).name == "one"
    path.write_text(text % ("one", 1) + text % ("two", 2))
    assert bridge.settings_of(parsed("--config", str(path), "--name", "two")).name == "two"
    with pytest.raises(UsageError, match="has 2 bridges; choose one with --name"):
        bridge.settings_of(parsed("--config", str(path)))
    with pytest.raises(UsageError, match="has 0 bridges called 'three'"):
        bridge.settings_of(parsed("--config", str(path), "--name", "three"))


class Manager:
    """A broker to which two bridges report, or none."""

    names = ["a", "b"]

    def __init__(self, url):
        self.url = url

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def ask(self, what, **given):
        assert what == "bridges"
        return {"names": self.names} if not given else {"status": {"name": given["name"]}, "reported_ms_ago": 1234}


def test_what_bridges_say_is_printed_as_objects(monkeypatch, capsys):
    monkeypatch.setattr(bridge.manage, "Manager", Manager)
    assert bridge.run(parsed("status", "--json")) == 0
    assert capsys.readouterr().out.splitlines() == ['{"name": "%s", "reported_s_ago": 1.2}' % name for name in "ab"]
    monkeypatch.setattr(Manager, "names", [])
    assert bridge.run(parsed("status", "amqp://u:secret@host/")) == 0
    told = capsys.readouterr()
    assert told.out == "" and "no bridge reports to the broker at" in told.err and "secret" not in told.err


def test_a_broker_that_does_not_answer_is_told(monkeypatch, capsys):
    def fail(url):
        raise bridge.manage.ManageFailed("nobody is there")

    monkeypatch.setattr(bridge.manage, "Manager", fail)
    assert bridge.run(parsed("status")) == 1
    assert capsys.readouterr().err == "leveret bridge: nobody is there\n"
