"""`leveret log`: look at, or shorten, the log of a broker that does not run.

    leveret log check DIR      count what is there; damage, segments that are lost, messages of queues that nothing defines: exit status 1
    leveret log dump DIR       one line of JSON for each thing in the log, in order; exit status 1 when it ends at damage
    leveret log compact DIR    write what is still wanted into new files and remove the old ones
    leveret log salvage DIR    one line of JSON for each message of a queue that nothing defines, in the log or put aside by an earlier
                               start; with --file NAME into that file, which only its owner can read

    salvaged: {"queue_id", "position", "arrived" (seconds since 1970), "exchange", "routing_key", "properties", "body_base64"}; in the
    properties, and where exchange or routing_key are not UTF-8, octets are ["$x", hex], tuples ["$t", ...], lists ["$l", ...]

Laws: a directory in use is refused, and so is a log of a newer version; check, dump and salvage change nothing. compact may be killed
anywhere: the old files go, oldest first, after the new ones are durable and were read back; what is in both is one message to a broker that
starts. It puts messages of queues that nothing defines aside first, and refuses a damaged log. Memory is bounded by definitions, settled
ranges and one record, not by the log.
"""

import base64
import errno
import json
import os
import struct
import sys

from leveret.core.log import message_record, segment_list, segments
from leveret.core.log.definition_records import plain
from leveret.core.log.journal import BIG
from leveret.core.log.settled_positions import Settled
from leveret.core.memory.layout import EPOCH
from leveret.core.message import annotations
from leveret.core.message.formats import format_of
from leveret.core.recovery import first_pass, orphans, recovery
from leveret.ports.store_file import DAMAGED, ORPHANS, DirectoryInUse, FileStore, number_of, private

SEGMENT_SIZE = 8 << 20
COMMIT_SIZE = 1 << 18
NAMES = {
    segments.HEAD: "head",
    segments.MESSAGE: "message",
    segments.SETTLED: "settled",
    segments.DEFINED: "defined",
    segments.GROUP: "group",
    segments.KEPT: "kept",
    segments.TRANSIENT: "transient",
}


class LogFailed(Exception):
    """The request cannot be carried out; the text is one sentence."""


class ReadOnly:
    """A store that nothing is removed from."""

    def __init__(self, store):
        self.numbers = store.numbers
        self.size = store.size
        self.read = store.read
        self.noted = store.noted

    def remove(self, number):
        raise OSError(errno.EROFS, "read only")


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("action", choices=("check", "dump", "compact", "salvage"), help="what to do")
    parser.add_argument("directory", metavar="DIR", help="the directory that was given to leveret serve --data")
    parser.add_argument("--file", metavar="NAME", help="with salvage: write to this file, which must not be there yet")


def run(options):
    """Do it; the exit status."""
    try:
        store = open_store(options.directory)
        try:
            if options.action == "salvage":
                return salvage(store, options.directory, options.file)
            if options.file is not None:
                raise LogFailed("--file is for salvage")
            return {"check": check, "dump": dump, "compact": compact}[options.action](store, options.directory)
        finally:
            store.close()
    except (LogFailed, DirectoryInUse, segments.OtherLog) as error:
        print(f"leveret log: {error}", file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # who read our lines has had enough
    except OSError as error:
        print(f"leveret log: {options.directory} cannot be used: {error.strerror}", file=sys.stderr)
    return 1


def open_store(directory):
    """The store of a directory that has a log. Raises LogFailed, DirectoryInUse, OSError."""
    if not any(number_of(name) or name.endswith(ORPHANS) or name == segment_list.FILE for name in os.listdir(directory)):
        raise LogFailed(f"there is no log in {directory}")
    return FileStore(directory, make=False)


class Wanted:
    """The contents of a log for a broker that starts: recovery's first pass, and the unsettled messages."""

    def __init__(self, store):
        self.store = ReadOnly(store)
        self.contents = first_pass.first_pass(self.store)
        self.queues = {each["id"]: each for each in self.contents.definitions.values() if each["kind"] == "queue"}
        self.taken = {}  # queue id -> Settled, of positions seen
        self.records = 0
        for segment in self.contents.segments:
            self.find_orphans(segment)

    def find_orphans(self, segment):
        """Count the messages in a segment that are of queues that nothing defines."""
        for type_, octets, at, _, _, _ in first_pass.records(self.store, segment.number, self.contents.ends[segment.number]):
            if type_ == segments.MESSAGE:
                for identity, position in places_of(octets[at:]):
                    if first_pass.is_orphan(self.contents, self.queues, identity, position):
                        self.contents.orphans[identity] = self.contents.orphans.get(identity, 0) + 1
                        segment.orphans += 1

    def messages(self):
        """(wanted places, payload) of each message that some queue wants; a place that comes twice (copied forward) counts once."""
        for segment in self.contents.segments:
            for type_, octets, at, size, _, _ in first_pass.records(self.store, segment.number, self.contents.ends[segment.number]):
                self.records += 1
                if type_ == segments.MESSAGE:
                    payload = octets[at : at + size]
                    places = [place for place in places_of(payload) if self.wants(*place)]
                    if places:
                        yield places, payload

    def wants(self, identity, position):
        """True when a queue wants the message at a position that was not there before."""
        taken = self.taken.setdefault(identity, Settled())
        settled = self.contents.settled.get(identity)
        if identity not in self.queues or settled is not None and settled.has(position) or taken.has(position):
            return False
        taken.add(position, position + 1)
        return True

    def damage(self):
        """The first damage in words, or ""."""
        if self.contents.damages:
            first = self.contents.damages[0]
            return (
                f"segment {first.number} at octet {first.offset}: {first.reason}; the {first.octets} octets from there on are not believed"
            )
        if self.contents.missing:
            number, count = self.contents.missing[0]
            return f"{count} records are missing behind segment {number}"
        return ""

    def losses(self):
        """Losses, and messages without a queue, in words, or ""."""
        return (recovery.told_of_lost(self.contents) + recovery.told_of_orphans(self.contents).split(": they stay")[0])[2:]


def places_of(payload):
    """(queue id, position) of a message record."""
    return message_record.places_at(payload, 0)


def check(store, directory):
    """Count, and find damage."""
    wanted = Wanted(store)
    counts: dict = {}
    octets = 0
    for places, payload in wanted.messages():
        octets += message_record.size_of(message_record.heads_at(payload, 0))
        for identity, _ in places:
            counts[identity] = counts.get(identity, 0) + 1
    kinds: dict = {}
    for kind, *_ in wanted.contents.definitions:
        kinds[kind] = kinds.get(kind, 0) + 1
    defined = ", ".join(f"{kind} {kinds[kind]}" for kind in sorted(kinds)) or "nothing"
    size = sum(store.size(number) for number in store.numbers())
    print(f"{directory}: {len(wanted.contents.segments)} segments of {size} octets, {wanted.records} records")
    print(f"defined: {defined}; settled places: {wanted.contents.counts['settled']}")
    print(f"messages wanted: {sum(counts.values())} places, {octets} octets")
    for identity in sorted(counts):
        print(f"  {wanted.queues[identity]['name']}: {counts[identity]}")
    aside = sorted(name for name in os.listdir(directory) if DAMAGED in name or name.endswith(ORPHANS))
    if aside:
        print(f"put aside earlier: {', '.join(aside)}")
    if store.strays():
        print(f"not of the log, and left alone: {', '.join(store.strays())}")
    if wanted.losses():
        print(f"lost: {wanted.losses()}")
    if wanted.contents.orphans or any(name.endswith(ORPHANS) for name in aside):
        print(f"`leveret log salvage {directory}` gives the messages of queues that nothing defines")
    print(f"damage: {wanted.damage() or 'none'}")
    return 1 if wanted.damage() or wanted.losses() else 0


def dump(store, directory):
    """Print everything."""
    status = 0
    for number in store.numbers():
        reader = segments.Reader(store, number)
        if reader.head():
            start, sequence = reader.offset, reader.sequence
            record = reader.next()
            while record is not None:
                for type_, payload in segments.ungrouped(record[1]) if record[0] == segments.GROUP else (record,):
                    line = {"segment": number, "offset": start, "sequence": sequence, "type": NAMES.get(type_, type_)}
                    line.update(described(type_, payload))
                    print(json.dumps(line))
                start, sequence = reader.offset, reader.sequence
                record = reader.next()
        if reader.damage is not None:
            print(json.dumps({"segment": number, "offset": reader.damage.offset, "damage": reader.damage.reason}))
            status = 1
    return status


def salvage(store, directory, path):
    """Give the messages of queues that nothing defines, each place once."""
    taken: dict = {}
    if path is not None and os.path.exists(path):
        raise LogFailed(f"{path} is there already")
    with open(path, "x", encoding="utf-8", opener=private) if path is not None else os.fdopen(os.dup(1), "w", encoding="utf-8") as file:
        for payload, places in all_orphans(store, directory):
            for identity, position in places:
                seen = taken.setdefault(identity, Settled())
                if not seen.has(position):
                    seen.add_one(position)
                    file.write(json.dumps(salvaged(payload, identity, position)) + "\n")
        file.flush()
        if path is not None:
            os.fsync(file.fileno())
    return 0


def all_orphans(store, directory):
    """(payload, places) of each: those that were put aside, then those in the log."""
    for name in sorted(os.listdir(directory)):
        if name.endswith(ORPHANS):
            reader = segments.Reader(OneFile(os.path.join(directory, name)), int(name[:8]))
            record = reader.next() if reader.head() else None
            while record is not None:
                yield record[1], places_of(record[1])
                record = reader.next()
            if reader.damage is not None:
                print(f"leveret log: {name}: {reader.damage.reason} at octet {reader.damage.offset}", file=sys.stderr)
    wanted = Wanted(store)
    for segment in wanted.contents.segments:
        if segment.orphans:
            yield from orphans.orphans_of(wanted.store, wanted.contents, segment.number)


class OneFile:
    """A store with one segment, whatever its number: a file."""

    def __init__(self, path):
        self.path = path

    def size(self, _):
        """Octets."""
        return os.path.getsize(self.path)

    def read(self, _, offset, size):
        """Octets; fewer at its end."""
        with open(self.path, "rb", buffering=0) as file:
            file.seek(offset)
            return file.read(size)


def salvaged(payload, identity, position):
    """A message in one of its places, so that it can be published again as it was."""
    heads = message_record.heads_at(payload, 0)
    at = message_record.route_at(0, heads[0])
    end = at + 1 + payload[at]
    exchange, key = payload[at + 1 : end], payload[end + 1 : end + 1 + payload[end]]
    at = message_record.properties_at(0, heads) + heads[4]
    return {
        "queue_id": identity,
        "position": position,
        "arrived": heads[1] + EPOCH,
        "exchange": name_or_octets(exchange),
        "routing_key": name_or_octets(key),
        "properties": plain(properties_of(payload, heads)),
        "body_base64": base64.b64encode(payload[at : at + heads[5]]).decode(),
    }


def properties_of(payload, heads):
    """A message's properties by name, as receivers get them: with the broker's annotations over them."""
    at = message_record.properties_at(0, heads)
    properties = format_of(heads[6]).decode(payload, at, at + heads[4])
    return annotations.put_over(properties, annotations.read(payload[at - heads[3] : at])) if heads[3] else properties


def name_or_octets(octets):
    """UTF-8 as text, else as definition_records.plain writes octets."""
    try:
        return str(octets, "utf-8")
    except UnicodeDecodeError:
        return plain(bytes(octets))


def described(type_, payload):
    """The contents of a record, in words."""
    if type_ == segments.DEFINED:
        return {"definition": json.loads(payload)}
    if type_ == segments.SETTLED:
        identity, count = struct.unpack_from(">IH", payload, 0)
        ranges = [struct.unpack_from(">QI", payload, 6 + 12 * index) for index in range(count)]
        return {"queue": identity, "ranges": [[first, first + size] for first, size in ranges]}
    if type_ in (segments.MESSAGE, segments.TRANSIENT):
        return described_message(payload)
    return {"octets": payload.hex()}


def described_message(payload):
    """A message: its places, route, properties and body."""
    heads = message_record.heads_at(payload, 0)
    at = message_record.route_at(0, heads[0])
    exchange, key = names_of(payload[at : at + heads[2]])
    at = message_record.properties_at(0, heads) + heads[4]
    return {
        "places": places_of(payload),
        "arrived": heads[1],
        "exchange": exchange,
        "routing_key": key,
        "properties": json.loads(json.dumps(properties_of(payload, heads), default=text)),
        "body": text(payload[at : at + heads[5]]),
    }


def names_of(route):
    """Exchange and routing key of a route: two short strings."""
    end = 1 + route[0]
    return text(route[1:end]), text(route[end + 1 : end + 1 + route[end]])


def text(octets):
    """Octets as text where they are UTF-8, else as {"hex": ...}; any other thing as its text."""
    if not isinstance(octets, (bytes, bytearray, memoryview)):
        return str(octets)
    try:
        return str(octets, "utf-8")
    except UnicodeDecodeError:
        return {"hex": bytes(octets).hex()}


def compact(store, directory):
    """Write the wanted records to new segments, then remove the old ones."""
    wanted = Wanted(store)
    if wanted.contents.damages or wanted.contents.noted is None:
        raise LogFailed(
            f"the log in {directory} is damaged ({wanted.damage() or wanted.losses()}): start the broker on it once, which puts that aside"
        )
    orphans.keep(store, wanted.contents)
    if any(segment.pinned for segment in wanted.contents.segments):
        raise LogFailed("there is no room to put the messages of queues that nothing defines aside; nothing was changed")
    old = store.numbers()
    before = sum(store.size(number) for number in old)
    writer = segments.Log(store, SEGMENT_SIZE, 1 << 62)
    writer.adopt(wanted.contents.segments)
    writer.begin(wanted.contents.next_number(store), (wanted.contents.sequence or 0) % BIG)
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
    for definition in wanted.contents.definitions.values():
        writer.append(segments.DEFINED, (json.dumps(plain(definition)).encode(),))
    for identity, ranges in wanted.contents.settled.items():
        if identity in wanted.queues:
            writer.append(segments.SETTLED, (struct.pack(">IHQI", identity, 1, ranges.end - 1, 1),))
    for places, payload in wanted.messages():
        writer.append(
            segments.MESSAGE,
            message_record.moved(payload, 0, places) + [payload[message_record.route_at(0, message_record.count_at(payload, 0)) :]],
        )
        if writer.gathered.size > COMMIT_SIZE:
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
            reader = segments.Reader(store, number)
            good = reader.head()
            while good and reader.next() is not None:
                pass
            if reader.damage is not None:
                raise LogFailed(f"nothing was changed: what was written cannot be read back ({reader.damage.reason})")
