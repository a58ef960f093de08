"""Management over AMQP: what is published to the default exchange with the routing key amq.leveret.management is answered to its reply-to.

Request and answer are JSON objects of at most management_size_max octets. A request: {"request": name, ...}. An answer: {"ok": true, ...},
or {"ok": false, "condition": ..., "error": sentence} for a request that cannot be carried out. A user without the tag is refused with
access-refused, a request that is too large with content-too-large, one without a reply-to with precondition-failed, one whose reply queue
is not there with not-found. Without room for the answer the request waits, as any publisher does. What an answer says of definitions and
users is durable before it leaves.

    overview {"after"}          memory and totals; counters, queues, streams and connections, page by page
    counters                    the counters alone
    definitions {"after"}       RabbitMQ's JSON, page by page (administrator)
    import {"definitions", "vhost"}     loads those of that virtual host (default: the broker's own); "rest": [section, items done] where
                                the answer was full, or a turn's work done, before the end (administrator)
    board                       of a board itself, on boards: heap, starts (firmware/status_page.py); the overview says "board": true there
    bridge, report-bridge, bridges      of and for bridges: core/bridge/requests.py
    set-policy {"name", "pattern", "definition", "priority", "apply-to"}, remove-policy {"name"}     (administrator, policymaker)
    remove-user {"name"}, clear-topic-permissions {"name"} of a user, remove-operator-policy {"name"}      (administrator)
"""

import json

from ..access import users
from ..broker.guard import words_of
from ..broker.policies import Policy
from ..errors import ACCESS_REFUSED, CONTENT_TOO_LARGE, INTERNAL_ERROR, NOT_FOUND, PRECONDITION_FAILED, ProtocolError
from ..memory import layout
from ..message import reading
from ..message.formats import BASIC, format_of
from ..message.route import pack
from ..outcomes import NO_ROOM, NOT_YET
from ..parts import needed
from ..shim import json_text
from . import answer_pages, overview, rabbitmq_definitions

READERS = ("administrator", "monitoring", "management", "policymaker")
POLICY_MAKERS = ("administrator", "policymaker")
ADMINISTRATORS = ("administrator",)

SENTENCE_MAX = 256  # characters of a sentence in an answer; six octets each at most, as JSON writes them
SENTENCE_ROOM = 6 * SENTENCE_MAX + 4
IMPORT_EFFORT = 2000  # of items that one request loads before others have their turn; an item is 1 ...
EFFORTS = {
    "policies": 150,
    "permissions": 150,
    "topic_permissions": 150,
    "parameters": 150,
}  # ... except those with patterns, which take as long as so many others


# How a request depends on the definitions and users that the log keeps.
NOTHING = 0
TELLS = 1
CHANGES = 2


class Answer:
    """The answer to a completed request, until it is sent: a message for the queue `target`, of which this has a reference
    (NONE: no more). `number`: what has to be durable in the log before."""

    def __init__(self, target, message, given, number):
        self.target = target
        self.message = message
        self.given = given
        self.number = number


def answer(broker, user, message, before):
    """Carry out the request in a message (complete, with its body), unless `before` is what it was answered when there was no room or the
    log had not got so far: (None, TAKEN), or (Answer or None, NO_ROOM or NOT_YET): try again with that later. Raises ProtocolError."""
    made = carried_out(broker, user, message) if before is None else before
    if made is None:
        return None, NO_ROOM
    if broker.journal is not None and not broker.journal.durable(made.number):
        return made, NOT_YET
    try:
        outcome = send(broker, made)
    except Exception as error:  # an error of ours: told in an answer of its own
        let_go(broker, made)
        made = written(broker, made.target, made.given.get("correlation_id"), faulty(broker, "an answer", error), made.number)
        if made is None:
            raise
        outcome = send_last(broker, made)
    if outcome == NO_ROOM:
        return made, NO_ROOM
    let_go(broker, made)
    return None, outcome


def send_last(broker, made):
    """Publish an Answer that says that another could not be published; when this one cannot either its connection hears of it."""
    try:
        return send(broker, made)
    except Exception:  # all or nothing: the message is nobody's
        let_go(broker, made)
        raise


def let_go(broker, made):
    """An Answer has left, or never will."""
    message, made.message = made.message, layout.NONE
    broker.tables.release(message)


def carried_out(broker, user, message):
    """The Answer to the request in a message; None: nothing was done, or only what can be done again, because there is no room for it."""
    require_tag(broker, user, READERS, "management")
    tables = broker.tables
    size = tables.messages[message + layout.MESSAGE_BODY]
    if size > broker.limits.management_size_max:
        raise ProtocolError(
            CONTENT_TOO_LARGE, "a management request of %d octets; this broker takes %d" % (size, broker.limits.management_size_max)
        )
    properties = reading.properties_of(broker.tables, message)
    target = properties.get("reply_to")
    if not isinstance(target, str) or target == "":
        raise ProtocolError(PRECONDITION_FAILED, "a management request needs reply-to")
    if target not in broker.queues:
        raise ProtocolError(NOT_FOUND, "no %s to answer a management request to" % broker.topology.called("queue", target))
    text, number = perform(broker, user, message)
    if text is None:
        return None
    try:
        return written(broker, target, properties.get("correlation_id"), text, number)
    except Exception as error:  # an error of ours: the peer is told, and goes on
        return written(broker, target, properties.get("correlation_id"), faulty(broker, "an answer", error), number)


def require_tag(broker, user, tags, subject):
    """Raise access-refused unless the user has one of the tags; `subject`: the request, for the text."""
    for tag in tags:
        if tag in user.tags:
            return
    broker.counters["access_refused"] += 1
    raise ProtocolError(ACCESS_REFUSED, "%s refused for user '%s': it needs the tag %s" % (subject, user.name, " or ".join(tags)))


def perform(broker, user, message):
    """The answer to the request in a message as JSON text, and what has to be durable before it leaves; None and 0: nothing was done,
    because there may be no room for the answer, or the log cannot be written."""
    number, of_log, name = 0, NOTHING, "unknown"
    try:
        size = broker.tables.messages[message + layout.MESSAGE_BODY]
        request = parsed(broker.tables.octets(message, broker.tables.size_of(message) - size, size))
        row = REQUESTS.get(request.get("request")) or broker.beyond and broker.beyond.requests.get(request.get("request"))
        if row is None and broker.page is not None and request["request"] == "board":
            row = (broker.page.tell, READERS, NOTHING)
        if row is None:
            raise ValueError("there is no request %s; there are %s" % (json_text(request.get("request")), ", ".join(sorted(REQUESTS))))
        action, tags, of_log = row
        name = request["request"]
        require_tag(broker, user, tags, "management request '%s'" % name)
        if of_log == CHANGES and (
            not room_for(broker, broker.limits.management_size_max) or broker.journal is not None and broker.journal.log.trouble
        ):
            return None, 0
        broker.counters["management_requests"] += 1
        request["user"] = user
        text = action(broker, request)
    except ProtocolError as error:
        if error.condition == ACCESS_REFUSED:
            raise
        text = failure(broker, error.condition, error.text)
    except ValueError as error:
        text = failure(broker, PRECONDITION_FAILED, str(error))
    except Exception as error:  # an error of ours: the peer is told, and goes on
        text = faulty(broker, name, error)
    if of_log != NOTHING and broker.journal is not None:
        try:
            number = broker.journal.defined()  # also what others have asked for: the answer describes it, or an error depends on it
        except Exception as error:  # an error of ours: the peer is told, and goes on
            text, number = faulty(broker, name, error), broker.journal.log.appended
    return text, number


def failure(broker, condition, text):
    """The answer to a request that cannot be carried out."""
    broker.counters["management_failures"] += 1
    return json_text({"ok": False, "condition": condition, "error": text[:SENTENCE_MAX]})


def faulty(broker, name, error):
    """The answer to a request in which this broker has made a fault: counted and told once, as every fault is; it costs this request alone.
    What it has changed by then stays, in memory and in the log: asked for again, the rest is done."""
    broker.guard.trouble("management request '%s'", name, error)
    return failure(broker, INTERNAL_ERROR, "an error of this broker: " + words_of(error))


def parsed(body):
    """A request. Raises ValueError."""
    try:
        request = json.loads(str(body, "utf-8"))
        if b"\\u" in body:
            json_text(request).encode("utf-8")  # half of a surrogate pair is no character
    except (ValueError, RuntimeError):  # not UTF-8, not JSON, or too deep
        raise ValueError("a management request is JSON in UTF-8") from None
    if not isinstance(request, dict) or not isinstance(request.get("request"), str):
        raise ValueError('a management request is an object, as {"request": "overview"}')
    return request


def room_for(broker, size):
    """True when an answer of `size` octets can be kept now."""
    return broker.tables.has_room(broker.tables.blocks_for(size + 1024), 1)


def written(broker, target, correlation_id, text, number):
    """The Answer for a queue; None when it has no room."""
    body = text.encode("utf-8")
    given = {"content_type": "application/json"}
    if correlation_id is not None:
        given["correlation_id"] = correlation_id
    properties = format_of(BASIC).encode(given)
    key = target.encode("utf-8")
    route = pack(b"", key)
    tables = broker.tables
    blocks = tables.blocks_for(len(route) + len(properties) + len(body))
    if not tables.has_room(blocks, 1) and not (is_waited_for(broker, target) and tables.has_spare(blocks, 1)):
        return None
    message = tables.new_message(route, len(properties), len(body), broker.seconds)
    try:
        tables.append(message, properties, 0, len(properties))
        tables.append(message, body, 0, len(body))
        return Answer(target, message, given, number)
    except Exception:  # all or nothing: the message is nobody's
        tables.release(message)
        raise


def is_waited_for(broker, target):
    """True when a queue's consumer can get an answer at once: the answer may then use the reserve."""
    queue = broker.queues.get(target)
    return queue is not None and len(queue.consumers) > 0 and queue.message_count() == 0


def send(broker, made):
    """Publish an Answer: TAKEN, or NO_ROOM; UNROUTABLE when its queue was deleted meanwhile."""
    lends = is_waited_for(broker, made.target)
    if lends:
        broker.tables.lend(1)
    try:
        return broker.publish(made.message, "", made.target.encode("utf-8"))
    finally:
        if lends:
            broker.tables.lend(-1)


# Requests: (broker, request) -> JSON text


def tell_overview(broker, request):
    """The whole overview."""
    head = {"ok": True, "overview": overview.overview(broker)}
    if broker.page is not None:
        head["board"] = True
    return answer_pages.page(head, overview.sections(broker), request.get("after"), broker.limits.management_size_max)


def tell_counters(broker, request):
    """The counters alone."""
    return json_text({"ok": True, "counters": overview.counters(broker)})


def tell_definitions(broker, request):
    """All definitions, page by page."""
    return answer_pages.page({"ok": True}, rabbitmq_definitions.sections(broker), request.get("after"), broker.limits.management_size_max)


def load_definitions(broker, request):
    """Load item by item, while the answer has room to name items left out, for one turn."""
    effort = 0
    document = request.get("definitions")
    rabbitmq_definitions.checked(document)
    report = Report(broker.limits.management_size_max - 320)
    host = rabbitmq_definitions.text(request, "vhost", 255, broker.virtual_host)
    others = rabbitmq_definitions.left_out(document, host)
    while others and report.room >= 2 * SENTENCE_ROOM:
        report.name(others.pop(0))
    if others:
        report.name("%d more lists or virtual hosts that this broker does not have" % len(others))
    for section in rabbitmq_definitions.SECTIONS:
        done = 0
        items = rabbitmq_definitions.ours(document.get(section, []), host)
        for item in items:
            if report.room < SENTENCE_ROOM or effort >= IMPORT_EFFORT:
                return report.text([section, done])
            report.count(section, rabbitmq_definitions.load(broker, section, item))
            effort += EFFORTS.get(section, 1)
            done += 1
    return report.text(None)


class Report:
    """The result of an import. `room`: octets left for sentences."""

    def __init__(self, room):
        self.room = room
        self.loaded = dict.fromkeys(rabbitmq_definitions.SECTIONS, 0)
        self.left_out = []

    def count(self, section, outcome):
        """One item: (loaded, sentence or "")."""
        loaded, sentence = outcome
        if loaded:
            self.loaded[section] += 1
        if sentence:
            self.name(sentence)

    def name(self, sentence):
        """Keep a sentence, cut to its part of the answer."""
        sentence = sentence[:SENTENCE_MAX]
        self.left_out.append(sentence)
        self.room -= len(json_text(sentence).encode("utf-8")) + 2

    def text(self, rest):
        """The answer."""
        return json_text({"ok": True, "loaded": self.loaded, "left_out": self.left_out, "rest": rest})


def set_policy(broker, request):
    """Add or replace a policy."""
    name = rabbitmq_definitions.text(request, "name", 255)
    broker.policies.set(
        broker,
        Policy(
            name,
            rabbitmq_definitions.text(request, "pattern", 1024),
            rabbitmq_definitions.table(request, "definition"),
            request.get("priority", 0),
            request.get("apply-to", "all"),
        ),
    )
    return json_text({"ok": True})


def remove_user(broker, request):
    """Remove a user; not-found when there is none of the name, precondition-failed for one of the configuration file."""
    users.remove(broker, rabbitmq_definitions.text(request, "name", 255))
    return json_text({"ok": True})


def remove_policy(broker, request):
    """Remove a policy; not-found when there is none of the name."""
    return remove_from(broker, request, broker.policies.by_name)


def remove_operator_policy(broker, request):
    """The same of an operator policy."""
    return remove_from(broker, request, broker.policies.operators)


def remove_from(broker, request, rows):
    """Remove one of these policies."""
    name = rabbitmq_definitions.text(request, "name", 255)
    if name not in rows:
        raise ProtocolError(NOT_FOUND, "there is no policy '%s'" % name)
    broker.policies.remove(broker, name, rows)
    return json_text({"ok": True})


def clear_topic_permissions(broker, request):
    """Take a user's topic permissions away; not-found when there is none of the name."""
    name = rabbitmq_definitions.text(request, "name", 255)
    user = broker.access.users.get(name)
    if user is None:
        raise ProtocolError(NOT_FOUND, "there is no user '%s'" % name)
    needed("access.topic_permissions", "topic permissions").clear(broker, user)
    return json_text({"ok": True})


def bridge(broker, request):
    """A bridge's round."""
    return needed("bridge.requests", "bridges").bridge(broker, request)


def report_bridge(broker, request):
    """Keep a bridge's report."""
    return needed("bridge.requests", "bridges").report(broker, request)


def tell_bridges(broker, request):
    """The reports of bridges."""
    return needed("bridge.requests", "bridges").bridges(broker, request)


# Request: (function, tags of those who may, what it has to do with what the log keeps)
REQUESTS = {
    "overview": (tell_overview, READERS, NOTHING),
    "counters": (tell_counters, READERS, NOTHING),
    "definitions": (tell_definitions, ADMINISTRATORS, TELLS),
    "import": (load_definitions, ADMINISTRATORS, CHANGES),
    "set-policy": (set_policy, POLICY_MAKERS, CHANGES),
    "remove-policy": (remove_policy, POLICY_MAKERS, CHANGES),
    "remove-operator-policy": (remove_operator_policy, ADMINISTRATORS, CHANGES),
    "remove-user": (remove_user, ADMINISTRATORS, CHANGES),
    "clear-topic-permissions": (clear_topic_permissions, ADMINISTRATORS, CHANGES),
    "bridge": (bridge, READERS, NOTHING),
    "report-bridge": (report_bridge, READERS, NOTHING),
    "bridges": (tell_bridges, READERS, NOTHING),
}
