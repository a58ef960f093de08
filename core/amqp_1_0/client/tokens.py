"""Claims-based security (OASIS AMQP CBS 1.0) as Azure's Service Bus and Event Hubs have it: a token is put to the node `$cbs`.

    connection with ANONYMOUS; sender to $cbs, receiver from $cbs with a reply address; a request for each address that is to be used;
    its answer has a status code: 200 or 202 when the token was taken.

A token is made from a policy's name and key: no key leaves this machine. It is good until `expires`, seconds since 1970, and is put again
before that.
"""

from ...access.passwords import base64, hmac_sha256
from .. import types
from .message import message_head

NODE = "$cbs"
SAS = "servicebus.windows.net:sastoken"

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"


def quoted(text):
    """Percent-encoding of everything but the unreserved characters (RFC 3986 section 2.3)."""
    return "".join([chr(octet) if octet in _PLAIN else "%%%02X" % octet for octet in text.encode("utf-8")])


def sas_token(resource, key_name, key, expires):
    """A shared access signature for a resource, as "amqps://name.servicebus.windows.net/queue"."""
    place = quoted(resource)
    signature = base64(hmac_sha256(key.encode("utf-8"), ("%s\n%d" % (place, expires)).encode("utf-8")))
    return "SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s" % (place, quoted(signature), expires, quoted(key_name))


def put_token(token, resource, number, reply_to, kind=SAS):
    """The message (octets) that puts a token for a resource; `number` comes back in its answer."""
    given = {"message-id": str(number), "reply-to": reply_to, "to": NODE}
    head = message_head(given, {"operation": "put-token", "type": kind, "name": resource})
    return head + types.encode(("described", ("ulong", 0x77), token))


def answer(message):
    """(number of the request or None, status code, text) of an answer (a Message)."""
    number = message.properties.get("correlation-id")
    answer = message.application_properties
    code = answer.get("status-code", answer.get("statusCode"))
    text = answer.get("status-description", answer.get("statusDescription")) or ""
    code = code[1] if isinstance(code, tuple) else code
    return int(number) if isinstance(number, str) and number.isdigit() else None, code if isinstance(code, int) else 0, text
