"""Long lists: filtered by name, sorted, cut to a page, and written row by row as the peer takes them, so that none holds the broker up.

    name=TEXT&use_regex=true   sort=COLUMN&sort_reverse=true   page=1&page_size=100   columns=name,message_stats.publish

A column is a path through the objects of a row. Without `page` the answer is a list, with it RabbitMQ's page object. A regular expression
is one of core/patterns: linear in the name, unlike Python's. Rows are made late: of a subject that has gone since there is none.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from ...core.patterns.expression import Pattern
from .answers import Answer, Piece, Refused, bad, written
from .call import Call, number

AT_ONCE = 10  # rows that are made, or filtered by an expression, before others have their turn
SIMPLE_AT_ONCE = 500
PAGE_SIZE_MAX = 500
PAGE_SIZE = 100
SUBJECT_SIZE = 160  # octets of memory for one with its name, while the list is on its way
WAIT_MS = 10000  # for room, for a message or for what a request holds
EXPRESSION_MAX = 16384  # octets of a compiled expression

Row = dict[str, Any]
Work = Generator[None, None, Any]


def hold(call: Call, size: int) -> Work:
    """A Held of so many octets, when there is room for them. Raises Refused."""
    began = call.broker.uptime_ms
    while call.server.body_size + size > call.server.bodies_max:
        if call.broker.uptime_ms - began > WAIT_MS:
            raise Refused(503, "service_unavailable", "too many large requests at a time")
        yield
    return Held(call.server, size)


class Held:
    """Octets that a request holds, counted with the bodies of all (server.py) as long as this object is there."""

    def __init__(self, server: Any, size: int) -> None:
        self.server = server
        self.size = 0
        self.resize(size)

    def resize(self, size: int) -> None:
        """Count this many octets as held, in place of those before."""
        self.server.body_size += size - self.size
        self.size = size

    def __del__(self) -> None:
        self.resize(0)


class Listed:
    """The subjects of a list. `all`: (name, subject) of each, which may go meanwhile; `row(subject)`: its row, or None where it has gone;
    `count`: of them, where there may be many."""

    def __init__(self, all_: Iterable[tuple[str, Any]], row: Callable[[Any], Row | None], count: int = 0) -> None:
        self.all = all_
        self.row = row
        self.count = count
        self.held: Held | None = None


def answer(call: Call, subjects: Listed) -> Work:
    """The Answer with a list, as a request's work."""
    query: dict[str, Any] = dict(call.query)
    subjects.held = yield from hold(call, subjects.count * SUBJECT_SIZE)
    rows: list[tuple[str, Any]] = []
    for at, each in enumerate(subjects.all, 1):
        rows.append(each)
        if at % SIMPLE_AT_ONCE == 0:
            yield
    total = len(rows)
    if query.get("name"):
        rows = yield from filtered(rows, query["name"], query.get("use_regex") == "true")
    if query.get("sort"):
        rows = yield from sorted_by(subjects, rows, query["sort"].split("."))
    else:
        rows = yield from by_name(rows)
    if query.get("sort_reverse") == "true":
        rows.reverse()
    head, tail = b"[", b"]"
    if "page" in query:
        try:
            size = number(query, "page_size", PAGE_SIZE, 1, PAGE_SIZE_MAX)
            page = number(query, "page", 1, 1, 1 << 30)
        except Refused as refused:
            raise Refused(400, "invalid_pagination_parameters", f"Invalid pagination parameters: {refused.reason}") from None
        count = max(1, -(-len(rows) // size))
        if page > count:
            raise Refused(400, "page_out_of_range", f"Page out of range, page: {page} page size: {size}, len: {len(rows)}")
        filtered_count = len(rows)
        rows = rows[(page - 1) * size : page * size]
        about = {
            "total_count": total,
            "item_count": len(rows),
            "filtered_count": filtered_count,
            "page": page,
            "page_size": size,
            "page_count": count,
        }
        head, tail = written(about)[:-1] + b',"items":[', b"]}"
    columns = [column.split(".") for column in query["columns"].split(",") if column] if query.get("columns") else []
    return Answer(200, pieces(subjects, rows, columns, head, tail))


def one(call: Call, row: Row, number: int = 0) -> Answer:
    """The Answer with one row, less the columns that are not asked for."""
    names = call.query.get("columns")
    if names:
        row = chosen(row, [column.split(".") for column in names.split(",") if column])
    return Answer(200, written(row), number=number)


def plain(call: Call, rows: Iterable[Row]) -> Work:
    """The Answer with rows that are made already."""
    made = sorted(((str(row.get("name", "")), row) for row in rows), key=lambda each: each[0])
    if "sort" not in call.query and "page" not in call.query and "name" not in call.query:
        columns = [column.split(".") for column in call.query.get("columns", "").split(",") if column]
        return Answer(200, pieces(Listed((), lambda row: row), made, columns, b"[", b"]"))
    return (yield from answer(call, Listed(made, lambda row: row)))


def filtered(rows: list[tuple[str, Any]], name: str, is_expression: bool) -> Work:
    """The rows whose names fit."""
    pattern = None
    if is_expression:
        try:
            pattern = Pattern(name, EXPRESSION_MAX)
        except ValueError as error:
            raise bad(f"the regular expression {name[:80]!r} {error}") from None
    word = name.lower()
    kept = []
    at_once = AT_ONCE if is_expression else SIMPLE_AT_ONCE
    for at, row in enumerate(rows, 1):
        if pattern.matches(row[0]) if pattern is not None else word in row[0].lower():
            kept.append(row)
        if at % at_once == 0:
            yield
    return kept


def by_name(rows: list[tuple[str, Any]]) -> Work:
    """The rows in the order of their names: parts are sorted, then merged."""
    parts = []
    for at in range(0, len(rows), SIMPLE_AT_ONCE):
        parts.append(sorted(rows[at : at + SIMPLE_AT_ONCE], key=lambda row: row[0]))
        yield
    return (yield from merged(parts, lambda row: row[0], lambda row: row))


def sorted_by(subjects: Listed, rows: list[tuple[str, Any]], path: list[str]) -> Work:
    """The rows in the order of a column, those without it first."""
    keyed = []
    for at, row in enumerate(rows, 1):
        made = subjects.row(row[1])
        if made is not None:
            keyed.append((order_of(value_at(made, path)), at, row))
        if at % AT_ONCE == 0:
            yield
    parts = []
    for at in range(0, len(keyed), SIMPLE_AT_ONCE):
        parts.append(sorted(keyed[at : at + SIMPLE_AT_ONCE], key=lambda each: each[:2]))
        yield
    return (yield from merged(parts, lambda each: each[:2], lambda each: each[2]))


def merged(parts: list[list[Any]], key: Callable[[Any], Any], row_of: Callable[[Any], Any]) -> Work:
    """Sorted parts as one list."""
    if len(parts) < 2:
        return [row_of(each) for each in parts[0]] if parts else []
    import heapq  # here: few lists are so long

    whole = []
    for at, each in enumerate(heapq.merge(*parts, key=key), 1):
        whole.append(row_of(each))
        if at % SIMPLE_AT_ONCE == 0:
            yield
    return whole


def order_of(value: Any) -> tuple[int, Any]:
    """A sort key for values of different kinds."""
    if value is None:
        return 0, 0
    if isinstance(value, (int, float)):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, json.dumps(value, sort_keys=True))


def value_at(row: Row, path: list[str]) -> Any:
    """The value of a column; None: the row has none."""
    value: Any = row
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def chosen(row: Row, columns: list[list[str]]) -> Row:
    """A row with these columns alone."""
    made: Row = {}
    for path in columns:
        value = value_at(row, path)
        if value is None and path[-1] not in row:
            continue
        at = made
        for name in path[:-1]:
            inner = at.get(name)
            if not isinstance(inner, dict):
                inner = at[name] = {}
            at = inner
        at[path[-1]] = value
    return made


def pieces(subjects: Listed, rows: list[tuple[str, Any]], columns: list[list[str]], head: bytes, tail: bytes) -> Iterator[Piece]:
    """A list as JSON, AT_ONCE rows a piece."""
    separator = b""
    waiting = [head]
    for at, (_, subject) in enumerate(rows, 1):
        row = subjects.row(subject)
        if row is not None:
            waiting += (separator, written(chosen(row, columns) if columns else row))
            separator = b","
        if at % AT_ONCE == 0:
            yield b"".join(waiting)
            waiting = []
    waiting.append(tail)
    yield b"".join(waiting)
