"""What a conversion keeps, changes and loses: cells of core/CONVERSIONS.md, out of messages that go through a broker (every_version.py)."""

from every_version import World
from full_messages import MESSAGES, VERSIONS
from message_views import view

KEPT, LOST = "=", "lost"
SHARED = ("type", "header x-jms-type")  # one of several may be there: only what has the value counts
WITH_THE_DELIVERY = ("exchange", "routing-key", "destination")  # each version has these where it delivers, not with the properties
# Names that say the same of a message in one version or another. A header stays a header, or is an annotation of 1.0.
GROUPS = (
    ("delivery-mode", "durable"),
    ("expiration", "ttl"),
    ("timestamp", "creation-time"),
    ("absolute-expiry-time", "expiration"),
    ("app-id", "group-id"),
    ("type", "annotation x-basic-type", "header x-jms-type", "subject"),
    ("subject", "header x-jms-type", "header qpid.subject", "type"),
    ("header x-jms-type", "type", "annotation x-basic-type", "subject"),
    ("header qpid.subject", "subject"),
    ("annotation x-basic-type", "type", "header x-jms-type"),
    ("group-id", "app-id"),
    ("group-sequence", "header JMSXGroupSeq"),
    ("header JMSXGroupSeq", "group-sequence"),
    ("message-id", "header x-message-id", "annotation x-message-id"),
    ("correlation-id", "header x-correlation-id", "annotation x-correlation-id"),
    ("cluster-id", "header x-cluster-id"),
    ("durable", "delivery-mode"),
    ("ttl", "expiration"),
    ("creation-time", "timestamp"),
    ("expiration", "absolute-expiry-time"),
    ("contents within", "header x-content-tree", "annotation x-content-tree"),
    ("header CC", "annotation x-cc"),
)


def names_for(name):
    """The names under which receivers may have what has this name at its sender."""
    names = [name]
    for group in GROUPS:
        if group[0] == name:
            names += group[1:]
    if name.startswith("header "):
        names.append("annotation " + name[7:])
    elif name.startswith("annotation "):
        names.append("header " + name[11:])
    return names


def pairs(source, target, world=None):
    """[(what was sent, what came)] of each message of a version at a receiver of another: views."""
    world = world or World()
    world.subscribe(target)
    world.received(target)
    for message in MESSAGES[source]:
        world.publish(source, message)
    came = world.received(target)
    assert world.broker.counters["internal_errors"] == 0
    assert len(came) == len(MESSAGES[source]), (source, target, came)
    return list(zip([sent_view(source, each) for each in MESSAGES[source]], [view(target, *each) for each in came]))


def sent_view(source, message):
    """How the message reads as it was sent."""
    header, body = message
    if header != "tree":
        return view(source, header, body)
    from full_messages import KEY, WITHIN, listed

    properties = b"\x20\x00" + bytes((len(KEY),)) + KEY.encode() if source == "0.9a5" else listed((), {}, ())
    return view(source, ("tree", properties, [WITHIN]), body)


def cell(name, value, came):
    """What a receiver has of a property, a header or a body."""
    for other in names_for(name):
        if other not in came or other in SHARED and plain(came[other]) != plain(value):
            continue
        if other == name:
            return KEPT if came[name] == value else came[name]
        if name == "absolute-expiry-time" and came[other].startswith('"') or name == "expiration" and other[0] == "a" and value[0] == '"':
            continue  # class basic's expiration is a lifetime, 0-10's a time
        return "%s: %s" % (other, came[other])
    return LOST


def plain(value):
    """A value without its type."""
    if '"' in value:
        return value[value.index('"') :]
    return " ".join(value.split(" ")[-2:]) if value.endswith("octets") else value.split(" ")[-1]


def rows(source):
    """[(name, value at the sender, {target: cell})] of a version, in the order of its messages; each but the first has rows for what is
    new in it."""
    by_target = {target: pairs(source, target) for target in VERSIONS}
    found, seen = [], set()
    for place in range(len(MESSAGES[source])):
        sent = by_target[source][place][0]
        for name in sent:
            if (name, sent[name]) not in seen and name not in WITH_THE_DELIVERY:
                seen.add((name, sent[name]))
                cells = {target: cell(name, sent[name], by_target[target][place][1]) for target in VERSIONS}
                found.append((name, sent[name], cells))
    return found
