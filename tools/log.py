"""`leveret log`: look at, or shorten, the log of a broker that does not run.

    leveret log check DIR      count what is there; the first damage, and exit status 1, when there is any
    leveret log dump DIR       one line of JSON for each thing in the log, in order; exit status 1 when it ends at damage
    leveret log compact DIR    write what is still wanted into new files and remove the old ones

Laws: a directory in use is refused, and so is a log of a newer version; check and dump change nothing. compact may be killed anywhere: the
old files go, oldest first, after the new ones are durable and were read back; what is in both is one message to a broker that starts. It
refuses a damaged log. Memory is bounded by definitions, settled ranges and one record, not by the log.
"""
import errno
import json
import os
import struct
import sys

from leveret.core import log, recovery_look
from leveret.core.amqp_0_9 import properties
from leveret.core.journal import BIG, plain
from leveret.core.settled import Settled
from leveret.ports.store_file import SUFFIX, DirectoryInUse, FileStore

SEGMENT_SIZE = 8 << 20
COMMIT_SIZE = 1 << 18
NAMES = {log.HEAD: "head", log.MESSAGE: "message", log.SETTLED: "settled", log.DEFINED: "defined", log.GROUP: "group",
         log.KEPT: "kept", log.TRANSIENT: "transient"}


class LogFailed(Exception):
    """What was asked for cannot be done; the text is one sentence."""


class ReadOnly:
    """A store that nothing is removed from."""

    def __init__(self, store):
        self.numbers = store.numbers
        self.size = store.size
        self.read = store.read

    def remove(self, number):
        raise OSError(errno.EROFS, "read only")


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("action", choices=("check", "dump", "compact"), help="what to do")
    parser.add_argument("directory", metavar="DIR", help="the directory that was given to leveret serve --data")


def run(options):
    """Do it; the exit status."""
    try:
        store = open_store(options.directory)
        try:
            return {"check": check, "dump": dump, "compact": compact}[options.action](store, options.directory)
        finally:
            store.close()
    except (LogFailed, DirectoryInUse, log.NewerLog) as error:
        print(f"leveret log: {error}", file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # who read our lines has had enough
    except OSError as error:
        print(f"leveret log: {options.directory} cannot be used: {error.strerror}", file=sys.stderr)
    return 1


def open_store(directory):
    """The store of a directory that has a log. Raises LogFailed, DirectoryInUse, OSError."""
    if not any(name.endswith(SUFFIX) and name[:-len(SUFFIX)].isdigit() for name in os.listdir(directory)):
        raise LogFailed(f"there is no log in {directory}")
    return FileStore(directory, make=False)


class Wanted:
    """What a log holds for a broker that starts: recovery's first pass, and the messages that are still wanted."""

    def __init__(self, store):
        self.store = ReadOnly(store)
        self.found = recovery_look.look(self.store)
        self.queues = {each["id"]: each for each in self.found.definitions.values() if each["kind"] == "queue"}
        self.taken = {}  # queue id -> Settled, of positions seen
        self.records = 0

    def messages(self):
        """(wanted places, payload) of each message that some queue wants; a place that comes twice (copied forward) counts once."""
        for segment in self.found.segments:
            for type_, octets, at, size, _, _ in recovery_look.records(self.store, segment.number, self.found.ends[segment.number]):
                self.records += 1
                if type_ == log.MESSAGE:
                    payload = octets[at:at + size]
                    places = [place for place in places_of(payload) if self.wants(*place)]
                    if places:
                        yield places, payload

    def wants(self, identity, position):
        """True when a queue wants the message at a position that was not there before."""
        taken = self.taken.setdefault(identity, Settled())
        settled = self.found.settled.get(identity)
        if identity not in self.queues or settled is not None and settled.has(position) or taken.has(position):
            return False
        taken.add(position, position + 1)
        return True

    def damage(self):
        """The first damage in words, or ""."""
        if self.found.damages:
            first = self.found.damages[0]
            return (f"segment {first.number} at octet {first.offset}: {first.reason}; "
                    f"the {first.octets} octets from there on are not believed")
        if self.found.missing:
            number, count = self.found.missing[0]
            return f"{count} records are missing behind segment {number}"
        return ""


def places_of(payload):
    """(queue id, position) of a message record."""
    count = struct.unpack_from(">H", payload, 0)[0]
    return [struct.unpack_from(">IQ", payload, 16 + 12 * index) for index in range(count)]


def check(store, directory):
    """Count, and find damage."""
    wanted = Wanted(store)
    counts = {}
    octets = 0
    for places, payload in wanted.messages():
        octets += len(payload) - 16 - 12 * len(places)
        for identity, _ in places:
            counts[identity] = counts.get(identity, 0) + 1
    kinds = {}
    for kind, *_ in wanted.found.definitions:
        kinds[kind] = kinds.get(kind, 0) + 1
    defined = ", ".join(f"{kind} {kinds[kind]}" for kind in sorted(kinds)) or "nothing"
    size = sum(store.size(number) for number in store.numbers())
    print(f"{directory}: {len(wanted.found.segments)} segments of {size} octets, {wanted.records} records")
    print(f"defined: {defined}; settled places: {wanted.found.counts['settled']}")
    print(f"messages wanted: {sum(counts.values())} places, {octets} octets")
    for identity in sorted(counts):
        print(f"  {wanted.queues[identity]['name']}: {counts[identity]}")
    aside = [name for name in os.listdir(directory) if ".damaged-" in name]
    if aside:
        print(f"put aside earlier: {', '.join(sorted(aside))}")
    print(f"damage: {wanted.damage() or 'none'}")
    return 1 if wanted.damage() else 0


def dump(store, directory):
    """Print everything."""
    status = 0
    for number in store.numbers():
        reader = log.Reader(store, number)
        if reader.head():
            start, sequence = reader.offset, reader.sequence
            record = reader.next()
            while record is not None:
                for type_, payload in log.ungrouped(record[1]) if record[0] == log.GROUP else (record,):
                    line = {"segment": number, "offset": start, "sequence": sequence, "type": NAMES.get(type_, type_)}
                    line.update(described(type_, payload))
                    print(json.dumps(line))
                start, sequence = reader.offset, reader.sequence
                record = reader.next()
        if reader.damage is not None:
            print(json.dumps({"segment": number, "offset": reader.damage.offset, "damage": reader.damage.reason}))
            status = 1
    return status


def described(type_, payload):
    """What a record says."""
    if type_ == log.DEFINED:
        return {"definition": json.loads(payload)}
    if type_ == log.SETTLED:
        identity, count = struct.unpack_from(">IH", payload, 0)
        ranges = [struct.unpack_from(">QI", payload, 6 + 12 * index) for index in range(count)]
        return {"queue": identity, "ranges": [[first, first + size] for first, size in ranges]}
    if type_ in (log.MESSAGE, log.TRANSIENT):
        return described_message(payload)
    return {"octets": payload.hex()}


def described_message(payload):
    """A message: its places, route, properties and body."""
    count, arrived, route, props, body = struct.unpack_from(">HIHII", payload, 0)
    at = 16 + 12 * count
    exchange, key = names_of(payload[at:at + route])
    return {"places": places_of(payload), "arrived": arrived, "exchange": exchange, "routing_key": key,
            "properties": json.loads(json.dumps(properties.decode(payload, at + route, at + route + props), default=text)),
            "body": text(payload[at + route + props:at + route + props + body])}


def names_of(route):
    """Exchange and routing key of a route: two short strings."""
    end = 1 + route[0]
    return text(route[1:end]), text(route[end + 1:end + 1 + route[end]])


def text(octets):
    """Octets as text where they are UTF-8, else as {"hex": ...}; any other thing as its text."""
    if not isinstance(octets, (bytes, bytearray, memoryview)):
        return str(octets)
    try:
        return str(octets, "utf-8")
    except UnicodeDecodeError:
        return {"hex": bytes(octets).hex()}


def compact(store, directory):
    """Write what is wanted anew, then remove what was there."""
    wanted = Wanted(store)
    if wanted.damage():
        raise LogFailed(f"the log in {directory} is damaged ({wanted.damage()}): start the broker on it once, which puts that aside")
    old = store.numbers()
    before = sum(store.size(number) for number in old)
    writer = log.Log(store, SEGMENT_SIZE, 1 << 62)
    writer.take_over(wanted.found.segments)
    writer.begin(old[-1] + 1, (wanted.found.sequence or 0) % BIG)
    first = writer.current().number
    try:
        write_anew(wanted, writer)
        read_back(store, first)
    except (LogFailed, OSError):
        for number in reversed([number for number in store.numbers() if number >= first]):
            store.remove(number)
        raise
    for number in old:
        store.remove(number)
    after = sum(store.size(number) for number in store.numbers())
    print(f"{directory}: {before} octets in {len(old)} segments became {after} in {len(store.numbers())}")
    return 0


def write_anew(wanted, writer):
    """Definitions, the last position of each queue, and messages. Raises LogFailed."""
    for definition in wanted.found.definitions.values():
        writer.append(log.DEFINED, (json.dumps(plain(definition)).encode(),))
    for identity, ranges in wanted.found.settled.items():
        if identity in wanted.queues:
            writer.append(log.SETTLED, (struct.pack(">IHQI", identity, 1, ranges.end - 1, 1),))
    for places, payload in wanted.messages():
        count = struct.unpack_from(">H", payload, 0)[0]
        writer.append(log.MESSAGE, [struct.pack(">H", len(places)), payload[2:16]] + [struct.pack(">IQ", *place) for place in places]
                      + [payload[16 + 12 * count:]])
        if writer.parts_size > COMMIT_SIZE:
            commit(writer)
    commit(writer)


def commit(writer):
    """Write and sync. Raises LogFailed."""
    if not writer.commit():
        raise LogFailed(f"nothing was changed: {writer.trouble}")


def read_back(store, first):
    """See that the new segments can be read. Raises LogFailed."""
    for number in store.numbers():
        if number >= first:
            reader = log.Reader(store, number)
            good = reader.head()
            while good and reader.next() is not None:
                pass
            if reader.damage is not None:
                raise LogFailed(f"nothing was changed: what was written cannot be read back ({reader.damage.reason})")
