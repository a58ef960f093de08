"""The settings of a board (firmware/settings.py), from the command line and from the configuration file that `leveret serve` reads too.

Of that file it takes [limits] (what differs from the board's own), [[user]] (passwords leave this computer as salted hashes only),
[[bridge]] (a board has no TLS; the URLs of upstream stand on the board with their passwords, and are never shown) and [board]:
tools/SETTINGS.md has every key.

The Wi-Fi password comes from the environment variable LEVERET_WIFI_PASSWORD, from --wifi-password-file, from the settings that the board
has for the same network, or is asked at the terminal. It is never an argument, and never printed.
"""

import copy
import getpass
import json
import os
import sys

from leveret.core.access import passwords
from leveret.core.limits import BOARD
from leveret.core.memory.micropython_sizes import memory_needed
from leveret.ports.url_0_10 import Url010
from leveret.ports.url_1_0 import Url10
from leveret.ports.url_older import UrlOlder

from . import board_settings, boards, config
from .board_parts import DRAFTS
from .board_settings import NTP, PORT, WATCHDOG_MS
from .flash_files import SETTINGS, File
from .usage import UsageError

PASSWORD_VARIABLE = "LEVERET_WIFI_PASSWORD"
HIDDEN = "(not asked for)"
# What a board must carry (boards/<NAME>/board.toml) for a setting.
NEEDED = {"serial": "link", "listen": "tcp", "store": "log", "bridges": "bridge"}
USER_KEYS = ("tags", "configure", "write", "read")
_asked: dict = {}  # network: its password, asked once for all boards of a run


def wanted(board, options, existing):
    """The settings as a dict. `existing`: those on the board, or None. Raises UsageError."""
    if existing is not None and not options.wifi and not options.config:
        return dict(existing, name=options.name) if options.name else existing
    table = config.read(options.config).get("board", {})
    if options.wifi and board.network != "wifi":
        raise UsageError(f"--wifi: {board.name} has no Wi-Fi")
    settings = {
        "board": board.name,
        "name": options.name or table.get("name", board.name.replace("_", "-")),
        "limits": limits(board, options.config),
        "watchdog_ms": table.get("watchdog_ms", WATCHDOG_MS if board.uart else 0),
    }
    if options.wifi:
        settings["wifi"] = {"ssid": options.wifi, "password": wifi_password(options, existing)}
        if "country" in table:
            settings["wifi"]["country"] = table["country"]
    elif "ethernet" in table:
        settings["ethernet"] = table["ethernet"]
    add_version(settings, table, board)
    has_network = "wifi" in settings or "ethernet" in settings
    add_places(settings, table, has_network)
    if has_network and table.get("ntp", NTP):
        settings["ntp"] = table.get("ntp", NTP)
    if "sensor" in table and "amqp_0_9" not in board.carries["dialects"]:
        raise UsageError(f"[board.sensor] publishes over AMQP 0-9-1, which {board.name} does not carry (boards/{board.name}/board.toml)")
    for key in ("store", "sensor"):
        if key in table:
            settings[key] = table[key]
    if options.config:
        add_bridges(settings, board, options.config)
    for key, part in NEEDED.items():
        if key in settings and part not in board.carries["parts"]:
            raise UsageError(
                f"{key} needs the part {part!r}, which {board.name} does not carry (boards/{board.name}/board.toml)"
                + (": name a network with --wifi SSID" if key == "serial" and board.network == "wifi" else "")
            )
    users = stored_users(options.config, board, existing or {}) if options.config else []
    if users:
        settings["users"] = users
    return settings


def add_places(settings, table, has_network):
    """Where the board listens: `listen` and `serial`. Without a network it is the line that it was flashed over."""
    place = table.get("listen", PORT if has_network else 0)
    host, port = ("0.0.0.0", place) if isinstance(place, int) else split(place)
    if port:
        settings["listen"] = {"host": host, "port": port}
    line = table.get("serial", "" if has_network else "console")
    if line:
        settings["serial"] = line if isinstance(line, dict) else {"line": line}
    if "listen" not in settings and "serial" not in settings:
        raise UsageError('nobody could reach this broker: name a network with --wifi SSID, or serial = "console" in [board]')


def add_version(settings, table, board):
    """The draft of 2005 that the board serves, where it does: `version`. Raises UsageError."""
    carried = board.carries["dialects"]
    drafts = [version for version, dialect in DRAFTS.items() if dialect in carried]
    alone = len(drafts) == len(carried)
    version = table.get("version", drafts[0] if alone and len(drafts) == 1 else None)
    if version is None and alone:
        raise UsageError(f"{board.name} carries drafts alone, and one listener serves one of them: say version = {says(drafts)} in [board]")
    if version is not None and version not in drafts:
        raise UsageError(f"[board] version is {version!r}, which {board.name} does not carry (boards/{board.name}/board.toml)")
    if version is not None:
        settings["version"] = version


def says(versions):
    """Versions as a person would write them: '"0.9a5" or "0.9r1"'."""
    return " or ".join(f'"{version}"' for version in versions)


def add_bridges(settings, board, path):
    """The [[bridge]] tables, checked as `leveret serve` does. Raises UsageError."""
    made = config.bridges(path)
    if not made:
        return
    settings["bridges"] = config.read(path).get("bridge", [])
    if "bridge" not in board.carries["parts"]:
        return  # refused with what else is not carried
    if "listen" not in settings:
        raise UsageError(f"{path}: a [[bridge]] needs a network: name one with --wifi SSID, and [board] listen must not be 0")
    most = settings["limits"].get("bridge_count_max", BOARD["bridge_count_max"])
    if len(made) > most:
        raise UsageError(f"{path}: there are {len(made)} [[bridge]] and bridge_count_max is {most}: raise it in [limits]")
    for each in made:
        if any(url.tls is not None for url in each.upstream_urls):
            raise UsageError(
                f"{path}: [[bridge]] {each.name!r}: a board has no TLS, so its upstream must be amqp:// (in a network "
                "that you trust), or `leveret bridge` on a computer beside it goes upstream for it"
            )
        if any(isinstance(url, (Url010, UrlOlder)) for url in each.upstream_urls):
            raise UsageError(
                f"{path}: [[bridge]] {each.name!r}: no board carries the way to upstreams of other versions than 0-9-1 and 1.0: take a "
                "URL without protocol=0..., or `leveret bridge` on a computer beside it"
            )
        if "bridge_1_0" not in board.carries["parts"] and any(isinstance(url, Url10) for url in each.upstream_urls):
            raise UsageError(
                f"{path}: [[bridge]] {each.name!r}: this board does not carry the way to upstreams of AMQP 1.0: put bridge_1_0 into "
                "parts of its board.toml, or take a URL without protocol=1.0"
            )


def split(place):
    """(host, port) of "host:port", which has been checked."""
    host, _, port = place.rpartition(":")
    return host, int(port)


def settled(board, path):
    """The Board with the limits, the store and the bridges of a configuration file, "": none. Raises UsageError."""
    made = copy.copy(board)
    if path:
        table = config.read(path)
        board_settings.check(path, table.get("board", {}), board)
        made.limits = config.limits_over(path, {name: getattr(board.limits, name) for name in BOARD})
        made.store = table.get("board", {}).get("store")
        if board.bridges and config.bridges(path):
            made.bridges = [
                (each.get("buffer_size", boards.BRIDGE[0]), each.get("prefetch", boards.BRIDGE[1])) for each in table.get("bridge", [])
            ]
    return made


def limits(board, path):
    """The differences from core/limits.py's BOARD, with the file's [limits] over the board's own. Raises UsageError."""
    tried = settled(board, path)
    if tried.free() < min(tried.working_heap(), board.free()):
        raise UsageError(
            f"the limits add up to {memory_needed(tried.limits) >> 10} KiB, and {board.name} has {board.heap_size >> 10} KiB "
            f"for them, its code and {tried.working_heap() >> 10} KiB for what is in the making: make them smaller, "
            "as arena_size in [limits]"
            + (", or batch_octets in [board.store]" if tried.batch_heap else "")
            + (", or prefetch in [[bridge]]" if tried.bridges else "")
        )
    numbers = {name: getattr(tried.limits, name) for name in BOARD}
    return {name: value for name, value in numbers.items() if value != BOARD[name]}


def stored_users(path, board, existing):
    """The [[user]] tables with hashes for passwords; the hash that the board has stays where it fits the password. Raises UsageError."""
    known = {user.get("name"): user.get("password_hash") for user in existing.get("users", ())}
    entries = []
    for table, user in config.users(path, board.limits):
        entry = {"name": user.name}
        if user.topics is not None:
            raise UsageError(
                f"{path}: user {user.name!r}: no board carries topic permissions: leave them out, and give the user an exchange of its own"
            )
        if user.stored is not None:
            entry["password_hash"] = user.stored.text()
            old = known.get(user.name)
            if "password" in table and old and fits(old, table["password"]):
                entry["password_hash"] = old
        entry.update({key: table[key] for key in USER_KEYS if key in table})
        entries.append(entry)
    return entries


def wifi_password(options, existing):
    """The password of the network. Raises UsageError."""
    if options.wifi_password:
        return options.wifi_password
    if PASSWORD_VARIABLE in os.environ:
        return os.environ[PASSWORD_VARIABLE]
    if options.wifi_password_file:
        try:
            with open(options.wifi_password_file, encoding="utf-8") as file:
                return file.readline().rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"the password file {options.wifi_password_file} cannot be read: {reason}") from None
    old = (existing or {}).get("wifi") or {}
    if old.get("ssid") == options.wifi and "password" in old:
        return old["password"]
    if options.dry_run:
        return HIDDEN
    if not sys.stdin.isatty():
        raise UsageError(
            f"the password of {options.wifi} is asked at a terminal, and this is none: set {PASSWORD_VARIABLE}, "
            f"or name a file with "
            "--wifi-password-file"
        )
    if options.wifi not in _asked:
        _asked[options.wifi] = getpass.getpass(f"password of the Wi-Fi network {options.wifi}: ")
    return _asked[options.wifi]


def file_of(settings):
    """The File of settings."""
    return File(SETTINGS, json.dumps(settings, sort_keys=True).encode())


def of_octets(octets):
    """The settings in a board's file, or None when they cannot be read."""
    try:
        settings = json.loads(octets)
    except (ValueError, UnicodeDecodeError):
        return None
    return settings if isinstance(settings, dict) else None


def fits(stored, text):
    """True when a hash is one of this password."""
    try:
        check = passwords.stored(stored).check(passwords.octets_of(text))
    except ValueError:
        return False
    while not check.work():
        pass
    return check.good
