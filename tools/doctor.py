"""`leveret doctor`: looks at this machine, a configuration, a data directory and a running broker; says what is wrong and what to do.

    leveret doctor [--config FILE] [--data DIR] [--json] [URL]

One line a finding: ok, note or wrong, what was looked at, a sentence, and behind "->" what to do. It changes nothing. Without URL no broker
is asked, without --data the directory is the one that the file names. Exit status 0: nothing is wrong; 1: something is; 2: a mistake in the
command line.
"""

import json
import os
import resource
import sys
import time
from types import SimpleNamespace

from leveret import c_accel
from leveret.core.version import VERSION
from leveret.ports.store_file import DirectoryInUse

from . import address, config, data, log, manage, memory, serve
from .asking import check_url
from .usage import UsageError

OK, NOTE, WRONG = "ok", "note", "wrong"
EPOCH_2025 = 1735689600  # a clock before that was never set
SOON_S = 30 * 86400
FULL = 0.9  # of a pool: from there on publishers soon wait
LIFE_YEARS_MIN = 2
COUNTERS = {
    "internal_errors": "errors of this broker's own; its log names each once: report them",
    "poisoned": "messages that the broker could not handle are in the queue leveret.poison",
    "addresses_refused": "connections refused because log-ins from their address kept failing: `leveret list connections`, or the log",
    "connections_refused": "connections refused for want of a place: raise connection_count_max, or close idle clients",
    "dead_letters_lost": "dead letters that no queue got: see that each dead letter exchange has a queue bound",
    "readers_overtaken": "readers of streams that retention has overtaken: raise x-max-length-bytes, or read faster",
}


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("--config", metavar="FILE", help="the configuration file of the broker")
    parser.add_argument("--data", metavar="DIR", help="its data directory (default: the one that the file names)")
    parser.add_argument("--json", action="store_true", help="an array of objects: level, subject, sentence, advice")
    parser.add_argument("url", nargs="?", metavar="URL", help="a running broker, as amqp://guest:guest@127.0.0.1:5672/")


def finding(level, subject, sentence, advice=""):
    """One of doctor's lines."""
    return {"level": level, "subject": subject, "sentence": sentence, "advice": advice}


def run(options):
    """Look at everything; the exit status."""
    if options.url is not None:
        check_url(options.url)
    findings = list(everything(options))
    if options.json:
        print(json.dumps(findings, indent=1))
    else:
        for each in findings:
            advice = f"  -> {each['advice']}" if each["advice"] else ""
            print(f"{each['level']:5}  {each['subject']:8}  {each['sentence']}{advice}")
    return 1 if any(each["level"] == WRONG for each in findings) else 0


def everything(options):
    """All findings."""
    yield from of_machine()
    directory = options.data
    if options.config is not None:
        yield from of_configuration(options.config)
        directory = directory or named_directory(options.config)
    if directory is not None:
        yield from of_directory(directory)
    if options.url is not None:
        yield from of_broker(options.url)


# The machine


def of_machine():
    """Python, C, files, clock, memory."""
    yield finding(OK, "machine", f"Leveret {VERSION} on Python {sys.version.split()[0]}")
    if c_accel.is_chosen():
        yield finding(OK, "machine", "the hot functions run in C")
    elif c_accel.STALE:
        yield finding(WRONG, "machine", c_accel.install(), "python3 tools/dev.py setup, or pip install again: brokers work at a lower rate")
    else:
        yield finding(NOTE, "machine", c_accel.install(), "the broker works, at a lower rate")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1024:
        yield finding(WRONG, "machine", f"a process may open {hard} files here", "ulimit -n 4096, or LimitNOFILE= in the unit")
    if time.time() < EPOCH_2025:
        advice = "set it (NTP): lifetimes, certificates and ages of streams are wrong"
        yield finding(WRONG, "machine", f"the clock says {time.strftime('%Y-%m-%d')}", advice)
    for package, use in (("h11", "--http"), ("wsproto", "ws:// and wss://")):
        try:
            __import__(package)
        except ImportError:
            yield finding(NOTE, "machine", f"{package} is not here: no {use}", "pip install 'leveret[web]'")
    most = memory.machine()
    yield finding(OK, "machine", f"{most >> 20} MiB of memory, of which a broker takes half at most unless memory_max says else")


# The configuration


def serving(path):
    """Options of `leveret serve` with this file alone."""
    names = dict.fromkeys(("listen", "http", "memory_max", "definitions", "vhost", "log_level", "memory"))
    return SimpleNamespace(config=path, **dict(names, **dict.fromkeys(data.KEYS), data=None))


def of_configuration(path):
    """The file as `leveret serve --config` would read it, and its valid settings that an operator should think about."""
    options = serving(path)
    try:
        addresses, limits, others = serve.settings(options)
        access = config.access(path, limits)
        kept = config.kept(options)
        if kept is not None:
            kept.check(limits)
        config.virtual_host(path), config.policies(path), config.made_on_use(path)
        size = memory.total(limits, addresses, *others)
    except UsageError as error:
        yield finding(WRONG, "config", str(error), "`leveret serve --check-config` says the same until it is right")
        return
    yield finding(OK, "config", f"{path} can be served: at most {size >> 20} MiB when every limit is reached")
    for sentence in config.remarks(path):
        yield finding(NOTE, "config", sentence)
    if any("password" in table for table in config.read(path).get("user", [])):
        if os.stat(path).st_mode & 0o077:
            yield finding(WRONG, "config", f"{path} has passwords in the clear, and others may read it", f"chmod 600 {path}")
        else:
            yield finding(NOTE, "config", f"{path} has passwords in the clear", "`leveret password` makes a password_hash")
    if kept is None:
        yield finding(
            NOTE, "config", "messages are in memory only, and are gone when the broker ends", '[data] directory = "..." keeps them'
        )
    if serve.only_guest(access.users, addresses):
        yield finding(WRONG, "config", "a listener is open to other machines, and only guest, from this one, may log in", "name [[user]]s")
    needed = limits.connection_count_max + limits.surplus_count_max + serve.DESCRIPTORS_BESIDE
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        yield finding(WRONG, "config", f"its connections need {needed} open files, and a process has {hard} here", f"ulimit -n {needed}")
    for place in addresses:
        yield from of_listener(place)


def of_listener(place):
    """A listener: TLS, its files, its device."""
    if isinstance(place, address.SerialAddress):
        if not os.path.exists(place.device):
            yield finding(WRONG, "config", f"{place.device} is not there", "plug the adapter in, or correct the device's name")
        elif not os.access(place.device, os.R_OK | os.W_OK):
            yield finding(WRONG, "config", f"this user may not use {place.device}", "add the broker's user to the group dialout")
    elif not isinstance(place, address.TlsAddress):
        if address.is_open(place):
            text = f"{place.url()} is open to other machines without TLS: passwords and messages can be read on the way"
            yield finding(NOTE, "config", text, "amqps://HOST:PORT?cert=FILE&key=FILE")
    else:
        yield from of_certificates(place)


def of_certificates(place):
    """The files of a listener with TLS."""
    from leveret.ports.http.health import expiry_of
    from leveret.ports.tls import Certificates, TlsFailed

    try:
        Certificates(place.cert, place.key, place.ca, place.verify)
        left = expiry_of(place.cert) - time.time()
    except (TlsFailed, OSError, ValueError) as error:
        yield finding(WRONG, "config", f"{place.url()}: {error}")
        return
    if left < SOON_S:
        text = f"{place.cert} " + (f"ends in {left / 86400:.0f} days" if left > 0 else "has ended: clients refuse it")
        yield finding(NOTE if left > 0 else WRONG, "config", text, "renew it; kill -HUP or `leveret reload` reads it anew")


def named_directory(path):
    """[data] directory of a file; None where it has none, or a mistake."""
    try:
        return config.read(path).get("data", {}).get("directory")
    except UsageError:
        return None


# The data directory


def of_directory(directory):
    """Whether a broker could begin with what is in a directory."""
    if not os.path.isdir(directory):
        yield finding(NOTE, "data", f"{directory} is not there: the broker makes it")
        return
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        yield finding(WRONG, "data", f"this user may not write {directory}", "chown it to the broker's user")
        return
    free = data.free_octets(directory)
    if free < 64 << 20:
        yield finding(WRONG, "data", f"the disk of {directory} has {free >> 20} MiB left: publishers wait when it is full", "make room")
    else:
        yield finding(OK, "data", f"{free >> 20} MiB are left on the disk of {directory}")
    try:
        store = log.open_store(directory)
    except log.LogFailed:
        yield finding(OK, "data", f"{directory} has no log yet")
        return
    except DirectoryInUse:
        yield finding(OK, "data", f"{directory} is in use by a running broker: its log is not read now")
        return
    except OSError as error:
        yield finding(WRONG, "data", f"{directory} cannot be used: {error.strerror}")
        return
    try:
        yield from of_log(store, directory)
    finally:
        store.close()


def of_log(store, directory):
    """The log of a broker that does not run."""
    try:
        wanted = log.Wanted(store)
    except log.segments.OtherLog as error:
        yield finding(WRONG, "data", str(error))
        return
    damage, losses = wanted.damage(), wanted.losses()
    if damage or losses:
        advice = f"keep a copy, then `leveret log check {directory}` and `leveret log salvage {directory}`"
        yield finding(WRONG, "data", f"the log is damaged: {'; '.join(str(each) for each in (damage, losses) if each)}", advice)
    else:
        yield finding(OK, "data", f"the log in {directory} is whole: {wanted.records} records")


# A running broker


def of_broker(url):
    """The findings about a running broker, from its overview."""
    try:
        with manage.Manager(url) as manager:
            first, items = manager.pages("overview")
    except manage.ManageFailed as error:
        yield finding(WRONG, "broker", str(error), "is it running, and are user and password right? `leveret status URL`")
        return
    overview = first["overview"]
    counters = {name: count for each in items.get("counters", []) for name, count in each.items()}
    yield finding(OK, "broker", f"{overview['product']} {overview['version']} has run for {overview['uptime_ms'] // 1000} s")
    if overview["version"] != VERSION:
        yield finding(NOTE, "broker", f"it is version {overview['version']}, and this command is of {VERSION}")
    publishers = overview["publishers"]
    if publishers["waiting"]:
        text = f"{publishers['waiting']} publishers wait: {publishers['reason'] or 'a queue is full'}"
        yield finding(WRONG, "broker", text, "consume, purge, or raise the limit that is named")
    for pool in ("blocks", "messages", "entries"):
        used, free = overview["memory"][pool + "_used"], overview["memory"][pool + "_free"]
        if used > FULL * (used + free):
            yield finding(WRONG, "broker", f"{used} of {used + free} {pool} are used", "consume, or raise memory_max (`leveret limits`)")
    full = [queue["name"] for queue in items.get("queues", []) if queue["full"]]
    if full:
        yield finding(WRONG, "broker", f"{len(full)} queues are full, as {full[0]!r}: their publishers wait", "consume or purge them")
    idle = [queue["name"] for queue in items.get("queues", []) if queue["messages"] and not queue["consumers"]]
    if idle:
        yield finding(NOTE, "broker", f"{len(idle)} queues have messages and no consumer, as {idle[0]!r}")
    kept = overview["log"] or {}
    if kept.get("trouble"):
        yield finding(WRONG, "broker", f"its log cannot be written: {kept['trouble']}", "make room on its disk, or replace it")
    life = kept.get("life_years")
    if isinstance(life, (int, float)) and life < LIFE_YEARS_MIN:
        yield finding(
            WRONG, "broker", f"at this rate the medium of the log lasts {life:g} years", "--sync batch writes less (`tools/DATA.md`)"
        )
    for name, advice in COUNTERS.items():
        if counters.get(name):
            yield finding(NOTE, "broker", f"{name} {counters[name]}", advice)
