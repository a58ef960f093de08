"""Values as RabbitMQ writes them into headers of events: terms of Erlang, for its tables and addresses."""

import ipaddress
from typing import Any

INT_32 = 1 << 31
VERSIONS = {"AMQP 0-9-1": "{0,9,1}", "AMQP 0-9": "{0,9}", "AMQP 0-8": "{0,8}", "AMQP 0-10": "{0,10}", "AMQP 1.0": "{1,0}"}


def long(number: int) -> tuple[str, int]:
    """A number with RabbitMQ's type."""
    return ("l", number)


def header(value: Any) -> Any:
    """A value of JSON as a header has it: its whole numbers with RabbitMQ's type."""
    if isinstance(value, dict):
        return {name: header(each) for name, each in value.items()}
    if isinstance(value, list):
        return [header(each) for each in value]
    return long(value) if type(value) is int else value


def table(given: dict[str, Any]) -> list[str]:
    """A table: a term for each of its fields."""
    return [field(name, value) for name, value in given.items()]


def field(name: str, value: Any) -> str:
    """A field as {<<"name">>,type,value}."""
    return f"{{<<{quoted(name)}>>,{typed(value)}}}"


def typed(value: Any) -> str:
    """A value behind its type."""
    if isinstance(value, bool):
        return f"bool,{str(value).lower()}"
    if isinstance(value, int):
        return f"{'signedint' if -INT_32 <= value < INT_32 else 'long'},{value}"
    if isinstance(value, float):
        return f"double,{value}"
    if isinstance(value, dict):
        return f"table,[{','.join(table(value))}]"
    if isinstance(value, list):
        return f"array,[{','.join('{' + typed(each) + '}' for each in value)}]"
    if isinstance(value, tuple) and len(value) == 2:
        return f"timestamp,{value[1]}"
    if value is None:
        return "void,undefined"
    text = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
    return f"longstr,<<{quoted(text)}>>"


def quoted(text: str) -> str:
    """A text in quotation marks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def address(host: str) -> str:
    """An address as a tuple of Erlang; a name, as of a line, stays one."""
    try:
        parsed = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host
    if parsed.version == 4:
        return "{" + ",".join(host.split(".")) + "}"
    return "{" + ",".join(str(int(group, 16)) for group in parsed.exploded.split(":")) + "}"


def version(family: str) -> str:
    """The protocol with this name."""
    return VERSIONS.get(family, family)
