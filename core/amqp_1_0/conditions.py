"""Error conditions of AMQP 1.0 (sections 2.8.15 to 2.8.18): symbols for the conditions of core/errors.py, and those that no other family
has.

What an error ends is said by its class: a LinkError its link (detach), a SessionError its session (end), any other ProtocolError that is
raised outside of a link the connection (close). An error that a verb of the broker raises for a link ends the link, unless the error is
hard.
"""

from ..errors import (
    ACCESS_REFUSED,
    CHANNEL_ERROR,
    COMMAND_INVALID,
    CONNECTION_FORCED,
    CONTENT_TOO_LARGE,
    FRAME_ERROR,
    INTERNAL_ERROR,
    NOT_ALLOWED,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    RESOURCE_ERROR,
    RESOURCE_LOCKED,
    SYNTAX_ERROR,
    UNEXPECTED_FRAME,
    ProtocolError,
)

SYMBOLS = {
    INTERNAL_ERROR: "amqp:internal-error",
    NOT_FOUND: "amqp:not-found",
    ACCESS_REFUSED: "amqp:unauthorized-access",
    SYNTAX_ERROR: "amqp:decode-error",
    RESOURCE_ERROR: "amqp:resource-limit-exceeded",
    NOT_ALLOWED: "amqp:not-allowed",
    NOT_IMPLEMENTED: "amqp:not-implemented",
    RESOURCE_LOCKED: "amqp:resource-locked",
    PRECONDITION_FAILED: "amqp:precondition-failed",
    COMMAND_INVALID: "amqp:illegal-state",
    CHANNEL_ERROR: "amqp:illegal-state",
    UNEXPECTED_FRAME: "amqp:illegal-state",
    CONNECTION_FORCED: "amqp:connection:forced",
    FRAME_ERROR: "amqp:connection:framing-error",
    CONTENT_TOO_LARGE: "amqp:link:message-size-exceeded",
}

# Conditions that only AMQP 1.0 has.
INVALID_FIELD = "amqp:invalid-field"
ILLEGAL_STATE = "amqp:illegal-state"
WINDOW_VIOLATION = "amqp:session:window-violation"
HANDLE_IN_USE = "amqp:session:handle-in-use"
TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded"
STOLEN = "amqp:link:stolen"
UNKNOWN_ID = "amqp:transaction:unknown-id"
ROLLED_BACK = "amqp:transaction:rollback"

DESCRIPTION_MAX = 255  # octets of a description, so that every error fits in the smallest frame that peers accept (section 2.4.1)


class LinkError(ProtocolError):
    """Ends a link."""


class SessionError(ProtocolError):
    """Ends a session."""


def symbol_of(condition):
    """The symbol of a condition: one of core/errors.py, one of AMQP 1.0 by its whole name, or by what stands behind `amqp:`."""
    if condition in SYMBOLS:
        return SYMBOLS[condition]
    return condition if condition.startswith("amqp:") else "amqp:" + condition


def error_of(condition, text, info=None):
    """The fields of the composite value `error` (section 2.8.14); a long text is cut. `info`: a map, as types.py has it."""
    octets = text.encode("utf-8")
    while len(octets) > DESCRIPTION_MAX or octets and not is_text(octets):
        octets = octets[: min(len(octets) - 1, DESCRIPTION_MAX)]
    return {"condition": symbol_of(condition), "description": str(octets, "utf-8"), "info": info}


def is_text(octets):
    """True when `octets` do not end inside a UTF-8 character."""
    try:
        str(octets, "utf-8")
        return True
    except UnicodeError:
        return False
