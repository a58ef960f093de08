"""`leveret serve`: a broker as a process.

    leveret serve [--listen URL]... [--http PLACE]... [--memory | --data DIR [--sync each|batch|none] ...] [--config FILE]
                  [--definitions FILE [--vhost NAME]]

Laws: `ready URL` on standard output for every listener that is up, one line each, flushed, and nothing else there; a listener that cannot
be opened is one sentence on standard error and exit status 1. SIGTERM and Ctrl-C close every open connection with the protocol's handshake
(connection.close 320), wait for it no longer than CLOSE_MS, tell the other ends of serial lines, and exit with 0. A broker that would not
fit the machine's memory when every limit is reached does not start. pyserial is imported only for a serial listener, ssl only for one with
TLS, wsproto only for one with WebSocket, h11 only for one with HTTP (--http). A service manager that waits to hear of us is told when all
listeners are open, that the loop goes round, and when the end begins (ports/service_manager.py).
SIGHUP reads certificates, users and policies anew
(tools/reload.py) and says what it does not: connections stay, but those of removed users, and what cannot be used changes nothing. With
--data (tools/data.py) a directory that cannot be used is one sentence and exit status 1 with nothing changed, and everything is written and
synced before the end. What --definitions leaves out is said, one sentence each; a file that holds none ends the start with status 2. Users
in it stand in for the guest that a broker without users has.
"""

import gc
import os
import resource
import signal
import socket
import sys
import time

from leveret import c_accel
from leveret.core.access import users
from leveret.core.access.permissions import GUEST
from leveret.core.broker.broker import MANAGEMENT, Broker
from leveret.core.connection.connection import Connection
from leveret.core.errors import ProtocolError
from leveret.ports.bridge.bridges import SLOTS, Bridges
from leveret.ports.clock import now_ms
from leveret.ports.password_thread import PasswordThread
from leveret.ports.sockets import SocketStream
from leveret.ports.tcp import Loop

from . import address, config, data, definitions, live, memory, reload
from .first_words import first_words
from .operator_log import ERROR, FORMATS, INFO, JOURNALD, LEVELS, TEXT, WARNING, OperatorLog, reads_journal
from .steered import Steered
from .usage import ListenFailed, UsageError

if False:  # for the type checker alone
    from typing import Any

LISTEN_DEFAULT = "amqp://127.0.0.1:5672"
STEP_MS = 100
CLOSE_MS = 2000
GOODBYE_MS = 1000
NONCE_SIZE = 16
HOST_NAME_SIZE = 64  # characters
DESCRIPTORS_BESIDE = 64  # what a process has open beside its connections
PLAIN_BLOCK_SIZE = 512  # octets of an arena block without C: Python moves bodies block by block


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument(
        "--listen",
        action="append",
        metavar="URL",
        help=f"{address.FORMS}; may be given again, port 0 takes a free one. The header AMQP 1 1 0 9 is 0-9, or the draft 0.9a5 with "
        f"version=0.9a5; AMQP 1 1 9 1 is 0-8, or the draft 0.9r1 with version=0.9r1 (default {LISTEN_DEFAULT})",
    )
    parser.add_argument(
        "--http",
        action="append",
        metavar="PLACE",
        help=f"the management API, metrics and the page: {address.HTTP_FORMS}; may be given again (default: off)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--memory", action="store_true", help="keep messages in memory only (the default)")
    data.add_arguments(parser, where)
    parser.add_argument("--config", metavar="FILE", help="TOML: listen = [URL, ...], [limits], [data], [[user]], [[policy]], [[bridge]]")
    parser.add_argument("--check-config", action="store_true", help="say whether options and file can be served, and end")
    parser.add_argument("--vhost", metavar="NAME", help="of --definitions " + definitions.VHOST_HELP)
    parser.add_argument(
        "--memory-max",
        metavar="SIZE",
        help="what all limits may add up to, as 256M: those that the file does not give "
        "are chosen so (default: half of what the machine has; `leveret limits` prints where it goes)",
    )
    parser.add_argument("--log-level", choices=tuple(LEVELS), help="sentences of less weight are not told (default: info)")
    parser.add_argument(
        "--log-format", choices=FORMATS, help="of the lines on standard error (default: journald where it reads them, else text)"
    )
    parser.add_argument("--definitions", metavar="FILE", help="RabbitMQ's JSON, loaded at the start (see `leveret definitions`)")


def settings(options):
    """(addresses, Limits, what memory.parts takes behind the addresses) from the command line and the file. Raises UsageError."""
    urls = config.listeners(options.config)
    addresses = [address.parse(url) for url in options.listen or urls or [LISTEN_DEFAULT]]
    addresses += [address.parse_http(url) for url in options.http or config.http(options.config)]
    others = (config.bridges(options.config), config.kept(options) is not None)
    given, most = config.given_limits(options.config)
    if not c_accel.is_chosen():
        given.setdefault("block_size", PLAIN_BLOCK_SIZE)
    try:
        return addresses, memory.fitting(given, memory.most(options.memory_max or most), addresses, *others), others
    except ValueError as error:
        raise UsageError(f"{options.config}: [limits] {error}") from None


def make_room_for_descriptors(limits, line_count):
    """Let the process open a descriptor for every connection. Raises UsageError when the system forbids it."""
    needed = limits.connection_count_max + limits.surplus_count_max + line_count + DESCRIPTORS_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UsageError(
            f"connection_count_max is {limits.connection_count_max} and this process may open {hard} files: "
            f"raise that with ulimit -n {needed}, or make connection_count_max smaller with --config"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Server:
    """One broker with its listeners."""

    def __init__(self, limits, line_count, access=None, bridge_count=0, http_count=0):
        self.form = c_accel.install()  # before there are tables
        self.broker = Broker(limits, os.urandom(NONCE_SIZE), access, LOG.peer)
        self.broker.inform = LOG.event
        self.broker.name = "leveret@" + socket.gethostname()[:HOST_NAME_SIZE]
        slots = limits.connection_count_max + limits.surplus_count_max + line_count + (bridge_count + live.SPARE) * SLOTS
        self.bridge_count_max = bridge_count + live.SPARE
        self.loop = Loop(slots + http_count * memory.HTTP_SLOTS, self.broker)
        self.bridges = Bridges(self.loop, self.broker, [], say)
        self.http = None  # web.Web, where there is a listener for HTTP
        self.firehose: "Any" = None  # ports/events/firehose.Firehose, from the first time that it was on
        self.events = None  # ports/events/watch.Watch, where they are asked for
        self.store = None  # of a broker that keeps messages on disk
        self.passwords = PasswordThread(self.broker) if hasattr(os, "eventfd") else None
        if self.passwords is not None:
            self.broker.aside = self.passwords
            self.loop.watch(self.passwords)
        self.manager = None  # ports/service_manager.ServiceManager, where systemd waits to hear of us
        self.lines = []
        self._certificates = []
        self._reload = None  # a reading of the configuration file that has begun
        self.path = None  # of the configuration file
        self.at_start = {}  # what it had then: config.read_at_start
        self.log: OperatorLog | None = LOG  # whose level a reading may change; None: the command line has the last word
        self.live = None  # live.LiveBridges
        self.steered = Steered(self, say)
        self.broker.services[MANAGEMENT] = self.managed
        self._named = []  # the policies that it named
        self._troubles = {}  # what was said last about a line that is in trouble

    def keep(self, chosen):
        """Keep messages as `chosen` (a data.Data) says, beginning with the messages in its directory. Raises data.DataFailed."""
        self.store, report = chosen.open(self.broker)
        self.loop.watch(self.store)
        say(report)
        say(chosen.window())
        say(data.log_at_start(self.broker.journal.figures(), chosen.disk_max))
        free = data.free_octets(chosen.directory)
        if free < chosen.disk_max - self.broker.journal.log.size():
            say(
                f"the log may take {chosen.disk_max >> 20} MiB and its disk has {free >> 20} MiB left: publishers wait when that is full",
                WARNING,
            )

    def define(self, policies, document, keep_guest, host=None):
        """Set the configuration's policies and load definitions (or None), those of the virtual host `host`. Raises UsageError."""
        self._named = [policy.name for policy in policies]
        for policy in policies:
            try:
                self.broker.policies.set(self.broker, policy)
            except ProtocolError as error:
                raise UsageError(error.text) from None
        if document is None:
            return
        guest = self.broker.access.users.get(GUEST)
        is_predeclared = guest is not None and guest.predeclared  # permissions for it make it a user like others
        loaded, sentences = definitions.load_into(self.broker, document, host)
        for sentence in sentences:
            say(sentence)
        say(definitions.counted(loaded))
        if loaded["users"] and not keep_guest and GUEST not in [user.get("name") for user in document["users"]]:
            if is_predeclared:
                users.remove(self.broker, GUEST)

    def bridge(self, settings, tables, fits):
        """Begin to bridge, as a list of Settings says, read from `tables`; `fits`: as of live.LiveBridges."""
        self.bridges = Bridges(self.loop, self.broker, settings, say)
        most = self.bridge_count_max
        self.live = live.LiveBridges(self.bridges, tables, self.bridges.begin, lambda now: len(now) <= most and fits(now), self.steered.say)

    def watch(self):
        """Make what tells events, from its `begin` on."""
        from leveret.ports.events.watch import Watch

        self.events = Watch(self.broker, "rabbit@" + self.broker.name.rpartition("@")[2])

    def trace(self, is_on, exchanges=None, queues=None):
        """Turn the firehose on, for exchanges and queues with these names (None: all), or off."""
        if is_on and self.firehose is None:
            from leveret.ports.events.firehose import Firehose

            self.firehose = Firehose(self.broker, "rabbit@" + self.broker.name.rpartition("@")[2])
        if is_on:
            self.firehose.turn_on(exchanges, queues)
            say("the firehose is on: messages are copied to the exchange amq.rabbitmq.trace, and each takes longer")
        elif self.is_traced():
            self.firehose.turn_off()
            say("the firehose is off")

    def is_traced(self):
        """True while the firehose is on."""
        return self.firehose is not None and self.firehose.is_on

    def listen(self, place):
        """Open a listener: its URL. Raises ListenFailed."""
        if isinstance(place, address.SerialAddress):
            return self._listen_on_line(place)
        try:
            if place.scheme in ("http", "https"):
                if self.http is None:
                    from . import web

                    self.http = web.Web(self, LOG)
                    if self.events is not None:
                        self.events.web(self.http.server)
                _, port = self.http.listen(place)
            elif isinstance(place, address.TlsAddress):
                _, port = self._listen_with_tls(place)
            elif isinstance(place, address.WebSocketAddress):
                _, port = self.loop.listen(place.host, place.port, self._accept, self._over_web_socket(place, SocketStream))
            else:
                _, port = self.loop.listen(place.host, place.port, self._accept_draft(place.version) if place.version else self._accept)
        except OSError as error:
            raise ListenFailed(f"cannot listen on {place.url()}: {address.explain(error)}") from None
        return place.url(port)

    def certificates_of(self, place):
        """The Certificates of a TlsAddress, read anew by `reload`. Raises ListenFailed."""
        from leveret.ports.tls import Certificates, TlsFailed

        try:
            certificates = Certificates(place.cert, place.key, place.ca, place.verify)
        except TlsFailed as error:
            raise ListenFailed(f"cannot listen on {place.url()}: {error}") from None
        self._certificates.append(certificates)
        return certificates

    def _listen_with_tls(self, place):
        from leveret.ports.tls import TlsStream
        from leveret.ports.tls_header import TlsHeaderStream, is_plain

        certificates = self.certificates_of(place)

        def make_stream(connected, name, from_loopback, host):
            given = (connected, name, from_loopback, host, certificates.context, self.refused)
            if place.scheme == "wss":
                return TlsStream(*given)
            return TlsHeaderStream(*given, (lambda stream: is_plain(self.loop, stream)) if place.scheme == "amqp" else None)

        if place.scheme == "wss":
            make_stream = self._over_web_socket(place, make_stream)

        def accept(stream):
            if self.steered.draining:
                return None
            return self._admitted(Connection(self.broker, stream.name, stream.from_loopback, stream.address, stream.identities), stream)

        return self.loop.listen(place.host, place.port, accept, make_stream)

    def _over_web_socket(self, place, make_stream):
        """`make_stream` with the WebSocket layer over what it makes. Raises ListenFailed."""
        try:
            from leveret.ports.web_socket import WebSocketStream
        except ImportError:
            raise ListenFailed(
                f"cannot listen on {place.url()}: WebSocket needs wsproto, as `pip install leveret[web]` brings it"
            ) from None

        def refused(stream, reason):
            self.broker.inform(f"{stream.name}: the WebSocket handshake has failed: {reason}", True)

        return lambda connected, *given: WebSocketStream(make_stream(connected, *given), refused)

    def refused(self, stream, reason):
        """A TLS handshake has failed."""
        self.broker.places.login_refused(stream.address, f"the TLS handshake of {stream.name} failed: {reason}")

    def managed(self, *given):
        """The first request to the management: from then on the broker knows those of ports/steering.py too, which cost nothing before."""
        from leveret.ports import steering

        steering.install(self.broker, self.steered)
        self.broker.services[MANAGEMENT] = self.broker.manage
        return self.broker.manage(*given)

    def reload(self):
        """Read all certificates anew, what cannot be used is said and the old ones stay; and the configuration file (tools/reload.py)."""
        from leveret.ports.tls import TlsFailed

        say, path = self.steered.say, self.path
        failed = False
        for certificates in self._certificates:
            try:
                certificates.load()
                say(f"{certificates.certificate} is used from now on")
            except TlsFailed as error:
                failed = True
                say(f"the certificates stay as they are: {error}", ERROR)
            except Exception as error:  # an error of ours: told; the certificates stay
                self.broker.guard.trouble("the certificates of %s", certificates.certificate, error)
        if path:
            self._reload = reload.Reload(self.broker, path, self.at_start, self._named, say, self.live, self.log)
            self._reload.failed = self._reload.failed or failed
        else:
            self.steered.over(failed)
            say("certificates were read anew; there is no configuration file (--config) to read users and policies from")

    def _listen_on_line(self, place):
        from leveret.ports.serial_line import LineFailed, SerialListener

        limits = self.broker.limits
        try:
            self.lines.append(
                SerialListener(
                    self.loop,
                    place.device,
                    place.baud,
                    self._accept_line,
                    **place.options,
                    stream_count=limits.line_connection_count_max,
                    stream_room=limits.line_connection_room,
                )
            )
        except LineFailed as error:
            raise ListenFailed(f"cannot listen on {place.url()}: {error}") from None
        return place.url()

    def _accept(self, stream):
        if self.steered.draining:
            return None
        return self._admitted(Connection(self.broker, stream.name, stream.from_loopback, stream.address), stream)

    def _accept_draft(self, version):
        """`_accept` for a listener whose ambiguous header means a draft."""
        from leveret.core.amqp_0_9.drafts.family import families

        served = families(version)

        def accept(stream):
            connection = self._accept(stream)
            if connection is not None:
                connection.families = served
            return connection

        return accept

    def _accept_line(self, stream):
        # Who holds the other end of our cable is as near as loopback: guest may log in.
        if self.steered.draining:
            return None
        return self._admitted(Connection(self.broker, stream.name, True), stream)

    def _admitted(self, connection, stream):
        if connection.closed:
            return None
        if self.http is not None:
            self.http.server.peers.met(connection, stream)
        return connection

    def tell_manager(self, urls):
        """Listeners are open: tell the service manager so, where one has started us."""
        if "NOTIFY_SOCKET" not in os.environ:
            return
        from leveret.ports.service_manager import ServiceManager

        self.manager = ServiceManager.of(os.environ, os.getpid())
        if self.manager is not None:
            self.manager.ready("listens on " + ", ".join(urls))

    def step(self):
        """Move what there is to move, for STEP_MS at most."""
        wait_ms = self.bridges.wait_ms(min([STEP_MS] + [line.wait_ms() for line in self.lines]))
        if self._reload is not None:
            wait_ms = 0
        if self.http is not None:
            wait_ms = self.http.server.wait_ms(wait_ms)
        for outbox in (self.events, self.firehose):
            if outbox is not None and outbox.step():
                wait_ms = 0
        self.loop.step(wait_ms if self.store is None else min(wait_ms, self.broker.journal.wait_ms()))
        self.bridges.step()
        if self.http is not None:
            self.http.server.step()
        LOG.tick()
        if self.manager is not None:
            self.manager.tick(int(time.monotonic() * 1000))
        if self._reload is not None and self._reload.step():
            self._named = self._reload.named
            self.steered.over(self._reload.failed)
            self._reload = None
        if self.live is not None:
            self.live.step()
        for line in self.lines:
            try:
                line.tick(now_ms())
            except Exception as error:  # an error of ours: told, and the others are served
                self.broker.guard.trouble("line %s", line.name, error)
            self._tell(line, "the serial line is back")
        if self.store is not None:
            self._tell(self.broker.journal.log, "the log can be written again")

    def _tell(self, which, good):
        """Say what trouble a line or the log has, or has no more, once."""
        if which.trouble != self._troubles.get(which, ""):
            self._troubles[which] = which.trouble
            say(which.trouble or good, ERROR if which.trouble else INFO)

    def close(self):
        """Close all connections with the handshake, within CLOSE_MS, and leave the lines; false when something could not be written."""
        if self.manager is not None:
            self.manager.stopping()
        self.loop.stop_listening()
        self.bridges.stop()
        for connection in list(self.broker.connections):
            connection.close("the broker is shutting down")
        self._step_while(lambda: self.broker.connections, CLOSE_MS)
        for connection in list(self.broker.connections):  # peers that do not answer: what was theirs alone goes all the same
            connection.finish()
        for line in self.lines:
            line.leave()
        self._step_while(lambda: any(line.is_leaving() for line in self.lines), GOODBYE_MS)
        self.loop.close()
        if self.passwords is not None:
            self.passwords.close()
        return self._close_store()

    def _step_while(self, waits, limit_ms):
        """Move octets while `waits()`, for so long at most."""
        limit = time.monotonic() + limit_ms / 1000
        while waits() and time.monotonic() < limit:
            self.loop.step(min([STEP_MS] + [line.wait_ms() for line in self.lines]))
            for line in self.lines:
                line.tick(now_ms())

    def _close_store(self):
        """Write and sync the log. Returns false when that fails."""
        if self.store is None:
            return True
        good = self.broker.journal.finish()
        if self.broker.contents is not None:
            self.broker.contents.close()
        if not good:
            say(f"not everything could be written: {self.broker.journal.log.trouble}", ERROR)
        self.store.close()
        return good


LOG = OperatorLog(sys.stderr, JOURNALD if reads_journal(sys.stderr, os.environ) else TEXT)


def spare_the_start():
    """What the start has made stays to the end: Python's collector need not look at it again, which takes it milliseconds of one step."""
    gc.collect()
    gc.freeze()


def say(sentence, level=INFO):
    """For people; standard output is for the ready lines."""
    LOG.say(sentence, level)


def only_guest(names, addresses):
    """True when a listener is open to other machines and nobody there may log in."""
    return set(names) == {GUEST} and any(address.is_open(place) for place in addresses)


def run(options):
    """Serve until told to end; the exit status."""
    LOG.least = LEVELS[options.log_level or config.log_level(options.config)]
    LOG.format = options.log_format or LOG.format
    addresses, limits, others = settings(options)
    line_count = sum(isinstance(place, address.SerialAddress) for place in addresses)
    make_room_for_descriptors(limits, line_count)
    access = config.access(options.config, limits)
    kept = config.kept(options)
    if kept is not None:
        kept.check(limits)
    virtual_host = config.virtual_host(options.config)
    policies = config.policies(options.config)
    made_on_use = config.made_on_use(options.config)
    bridges = config.bridges(options.config)
    document = definitions.read(options.definitions) if options.definitions else None
    at_start = config.read_at_start(options.config)
    if options.vhost is not None:
        if document is None:
            raise UsageError("--vhost says whose of the --definitions are taken, and there are none")
        definitions.check_host(options.definitions, document, options.vhost)
    octets_max = memory.total(limits, addresses, *others)
    if options.check_config:
        print(f"{options.config or 'the command line'} can be served: at most {octets_max >> 20} MiB when every limit is reached")
        return 0
    asked = []
    reloads = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked.append(number))
    signal.signal(signal.SIGHUP, lambda number, _: reloads.append(number))
    http_count = sum(place.scheme in ("http", "https") for place in addresses)
    server = Server(limits, line_count, access, len(bridges), http_count)
    server.path, server.at_start, server.log = options.config, at_start, None if options.log_level else LOG
    server.broker.virtual_host, server.broker.virtual_host_aliases = virtual_host
    server.broker.made_on_use = made_on_use  # nodes of AMQP 1.0
    server.broker.octets_max = octets_max
    try:
        if config.events(options.config):
            server.watch()  # first: bindings to its exchange come back from the log
        if kept is not None:
            server.keep(kept)
        server.define(policies, document, bool(config.read(options.config).get("user")), options.vhost)
        if server.events is not None:
            server.events.begin()
        urls = [server.listen(place) for place in addresses]
        for sentence in config.remarks(options.config):
            say(sentence)
        spare_the_start()
        for url in urls:  # when all of them are open: who waits for the first may stop at the second
            print("ready " + url, flush=True)
        if server.http is not None:
            server.http.tell(addresses, urls, kept)
        most = max(octets_max, memory.most(options.memory_max or config.given_limits(options.config)[1]))
        server.bridge(
            bridges,
            config.bridge_tables(options.config),
            lambda settings: memory.total(limits, addresses, settings, kept is not None) <= most,
        )
        server.tell_manager(urls)
    except (ListenFailed, data.DataFailed) as error:
        say(str(error), ERROR)
        server.close()
        return 1
    except UsageError:
        server.close()
        raise
    for sentence in first_words(server.form, octets_max, urls, server.broker.access.users, options.config, kept):
        say(sentence)
    if c_accel.STALE:
        say("this broker could be faster: " + c_accel.why_plain(), WARNING)
    if only_guest(server.broker.access.users, addresses):
        say(
            "nobody can log in from another machine yet, because guest may only come from this one: name users with [[user]] in --config",
            WARNING,
        )
    while not asked:
        if reloads:
            reloads.clear()
            server.steered.began()
            server.reload()
        server.step()
    return 0 if server.close() else 1
