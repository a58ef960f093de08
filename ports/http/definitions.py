"""Definitions, whole and of the virtual host: written item by item as the peer takes them, loaded item by item between the broker's other
work.

What an import leaves out it names: then the answer is 200 with {"left_out": [sentence, ...]} instead of 204, and 400 where nothing was
loaded.
"""

import json
from collections.abc import Iterator
from typing import Any

from ...core.management import rabbitmq_definitions
from ...core.version import PRODUCT, VERSION
from .answers import Answer, Piece, bad, written
from .call import Call, no_number
from .listing import Row, Work
from .views import COMPATIBLE

AT_ONCE = 10  # items that are written before others have their turn
EFFORTS = {"policies": 5, "permissions": 5, "topic_permissions": 5, "parameters": 5}  # of items to load, of AT_ONCE
OF_ALL = ("users", "permissions", "topic_permissions", "global_parameters")  # not of a virtual host
HOSTED = ("policies", "parameters")  # name their virtual host even there
SENTENCES_MAX = 1000


def export(call: Call) -> Answer:
    """GET /api/definitions[/VHOST]."""
    host = call.host() if "vhost" in call.names else None
    number = 0 if call.broker.journal is None else call.broker.journal.defined()
    headers = ()
    if call.query.get("download"):
        name = "".join(each if each.isascii() and each.isalnum() or each in "._-" else "_" for each in call.query["download"][:64])
        headers = (("content-disposition", f'attachment; filename="{name}"'),)  # type: ignore[assignment]  # empty else
    return Answer(200, pieces(call, host), headers, number=number)


def pieces(call: Call, host: str | None) -> Iterator[Piece]:
    """The document."""
    about: Row = {"rabbit_version": COMPATIBLE, "rabbitmq_version": COMPATIBLE, "product_name": PRODUCT, "product_version": VERSION}
    if host is None:
        about.update(vhosts=[{"name": call.broker.virtual_host}])
    yield written(about)[:-1]
    for name, subjects, make in rabbitmq_definitions.sections(call.broker):
        if host is not None and name in OF_ALL:
            continue
        waiting = [b',"', name.encode(), b'":[']
        separator = b""
        for at, (_, subject) in enumerate(list(subjects), 1):
            try:
                item = make(subject)
                if host is not None and name not in HOSTED:
                    item.pop("vhost", None)
                waiting += (separator, written(item))
                separator = b","
            except ValueError:  # the broker has made its name, or JSON cannot write it
                continue
            if at % AT_ONCE == 0:
                yield b"".join(waiting)
                waiting = []
        waiting.append(b"]")
        yield b"".join(waiting)
    yield b"}"


def load(call: Call) -> Work:
    """POST /api/definitions[/VHOST]."""
    host = call.host() if "vhost" in call.names else call.broker.virtual_host
    document = parsed(call)
    try:
        rabbitmq_definitions.checked(document)
    except ValueError as error:
        raise bad(str(error)) from None
    sentences = list(rabbitmq_definitions.left_out(document, host))
    loaded = effort = 0
    for section in rabbitmq_definitions.SECTIONS:
        for item in rabbitmq_definitions.ours(document.get(section, []), host):
            is_loaded, sentence = rabbitmq_definitions.load(call.broker, section, item)
            loaded += is_loaded
            if sentence and len(sentences) < SENTENCES_MAX:
                sentences.append(sentence)
            effort += EFFORTS.get(section, 1)
            if effort >= AT_ONCE:
                effort = 0
                yield
    number = call.server.promised()
    for sentence in sentences:
        call.broker.log(f"definitions of user '{call.user.name}': {sentence}")
    if not sentences:
        return Answer(204, number=number)
    if not loaded and any(document.get(section) for section in rabbitmq_definitions.SECTIONS):
        raise bad("; ".join(sentences[:20]))
    return Answer(200, written({"left_out": sentences}), number=number)


def parsed(call: Call) -> Any:
    """The document in the body: JSON, or a form's file (multipart/form-data), as RabbitMQ's page sends it. Raises Refused."""
    body = call.body
    kind = call.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        boundary = kind.partition("boundary=")[2].strip('"').encode()
        for part in body.split(b"--" + boundary) if boundary else ():
            head, _, rest = part.partition(b"\r\n\r\n")
            if b'name="file"' in head:
                body = rest.removesuffix(b"\r\n")
    try:
        document = json.loads(body, parse_constant=no_number)
    except (ValueError, RecursionError):
        raise bad("not_json") from None
    if not isinstance(document, dict):
        raise bad("not_json")
    for name in [name for name, items in document.items() if items == []]:
        del document[name]
    return document
