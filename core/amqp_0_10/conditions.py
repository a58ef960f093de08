"""Error conditions of AMQP 0-10: codes of execution.exception and connection.close for the conditions of core/errors.py."""

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
from .spec_0_10 import CLOSES, ERRORS

NAMES = {
    ACCESS_REFUSED: "unauthorized-access",
    NOT_FOUND: "not-found",
    RESOURCE_LOCKED: "resource-locked",
    PRECONDITION_FAILED: "precondition-failed",
    RESOURCE_ERROR: "resource-limit-exceeded",
    CONTENT_TOO_LARGE: "resource-limit-exceeded",
    NOT_ALLOWED: "not-allowed",
    NOT_IMPLEMENTED: "not-implemented",
    COMMAND_INVALID: "command-invalid",
    SYNTAX_ERROR: "command-invalid",
    INTERNAL_ERROR: "internal-error",
}

# Conditions that end a connection, whatever met them: nobody knows where the next frame begins, or who sends it. Segments that cannot be
# decoded (syntax-error) end their session, as "command segments could not be decoded", and those of controls the connection.
HARD = (FRAME_ERROR, UNEXPECTED_FRAME, CHANNEL_ERROR, CONNECTION_FORCED, INTERNAL_ERROR)

TEXT_MAX = 255  # octets of a str8

# Conditions that only AMQP 0-10 has.
ILLEGAL_STATE = "illegal-state"
ILLEGAL_ARGUMENT = "illegal-argument"
INVALID_ARGUMENT = "invalid-argument"
RESOURCE_DELETED = "resource-deleted"


class SessionError(ProtocolError):
    """Ends its session, whatever its condition."""


def error_code(condition):
    """The error-code of execution.exception."""
    return ERRORS.get(NAMES.get(condition, condition), ERRORS["internal-error"])


def close_code(condition):
    """The reply-code of connection.close, which has but four."""
    if condition in (CONNECTION_FORCED, INTERNAL_ERROR, RESOURCE_ERROR, ACCESS_REFUSED, NOT_ALLOWED):
        return CLOSES["connection-forced"]
    return CLOSES["invalid-path"] if condition == NOT_FOUND else CLOSES["framing-error"]


def short_text(text):
    """A text cut to what a str8 takes."""
    octets = text.encode("utf-8")[:TEXT_MAX]
    while octets:
        try:
            return str(octets, "utf-8")
        except UnicodeError:
            octets = octets[:-1]
    return ""
