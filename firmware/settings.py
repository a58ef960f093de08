"""The settings of a flashed gateway: /settings.json (beside main.py), written by `leveret flash`.

    board, name                            what it is, and what it is called on the network and in messages
    wifi: {ssid, password, country}        a Wi-Fi station; or
    ethernet: {kind, ...}                  an interface of the module `network` by name, the rest are its arguments
    listen: {host, port}                   where AMQP is served over TCP; without wifi and ethernet: on the network that is there anyway
    serial: {line, baud, tx, rx}           AMQP over a serial line: "console" (the REPL's own) or the number of a UART
    version                                "0.9a5" or "0.9r1": the draft of 2005 that its ambiguous header means; "": a published version
    limits: {name: number}                 differences from core/limits.py's BOARD
    store: {kind, path | start, size, segment_size, sync, batch_ms, batch_octets}      left out: messages are kept in memory
    users: [{name, password_hash, tags, configure, write, read}]                       left out: guest, over the serial line only
    watchdog_ms, ntp                       0, "": none
    sensor: {queue, every_ms, adc: {name: pin}, i2c: [...]}                            see sensor.py
    bridges: [{name, gateway, queue, upstream, ...}]                                   see ports/bridge/settings.py

A mistake is a BadSettings whose text says what to do; secrets are never in it.
"""

import json

from .say import CannotStart

PATH = "settings.json"
DEFAULTS: dict = {
    "board": "",
    "name": "leveret",
    "wifi": None,
    "ethernet": None,
    "listen": None,
    "serial": None,
    "version": "",
    "limits": {},
    "store": None,
    "users": [],
    "watchdog_ms": 0,
    "ntp": "",
    "sensor": None,
    "bridges": [],
}


class BadSettings(CannotStart):
    """The settings cannot be used; the text is one sentence."""


def load(path=PATH):
    """The settings as a dict with every key of DEFAULTS. Raises BadSettings."""
    try:
        with open(path) as file:
            given = json.load(file)
    except OSError:
        raise BadSettings("there is no %s on this board: run `leveret flash`, which writes it" % path) from None
    except ValueError:
        raise BadSettings("%s is not JSON: run `leveret flash` with its settings again, which writes it anew" % path) from None
    if not isinstance(given, dict):
        raise BadSettings("%s holds no settings: run `leveret flash` with its settings again" % path)
    unknown = sorted([name for name in given if name not in DEFAULTS])
    if unknown:
        raise BadSettings("%s: there is no setting %r; there are %s" % (path, unknown[0], ", ".join(sorted(DEFAULTS))))
    settings = dict(DEFAULTS)
    for name in given:
        wanted = DEFAULTS[name]
        if wanted is not None and not isinstance(given[name], type(wanted)):
            raise BadSettings("%s: %s is of the wrong kind" % (path, name))
        if wanted is None and given[name] is not None and not isinstance(given[name], dict):
            raise BadSettings("%s: %s is of the wrong kind" % (path, name))
        settings[name] = given[name]
    if settings["listen"] is None and settings["serial"] is None:
        raise BadSettings(
            "%s names no network and no serial line, so nobody could reach the broker: "
            "run `leveret flash` with --wifi SSID or --serial LINE" % path
        )
    if settings["bridges"] and settings["listen"] is None:
        raise BadSettings("%s has bridges and no network for them: run `leveret flash` with --wifi SSID, or without [[bridge]]" % path)
    return settings
