"""Properties of the classes file and stream by the names that families share, and back.

filename and cluster-id, which a message has not, are its headers x-filename and x-cluster-id.
"""

from ..shim import const

FILENAME = "x-filename"
CLUSTER_ID = "x-cluster-id"
DESTINATION = "x-content-destination"  # of a content that 0.9a5 has staged, whose file.publish says no key
HEADERS = (("filename", FILENAME), ("cluster_id", CLUSTER_ID))
SAME = ("content_type", "content_encoding", "priority", "reply_to", "message_id")  # fields with the names that families share
TEXTS = ("content_type", "content_encoding", "reply_to", "message_id")
PRIORITY_MAX = const(9)


def named(fields):
    """The fields of a file's or stream's properties by the names that families share, but for the timestamp."""
    given = {each: fields[each] for each in SAME if fields.get(each) is not None}
    headers = dict(fields.get("headers") or {})
    for field, header in HEADERS:
        if fields.get(field) is not None:
            headers[header] = fields[field]
    if headers:
        given["headers"] = headers
    return given


def fields_of(given, is_file):
    """The opposite: fields of class file or stream out of properties by the names that families share."""
    fields = {}
    for each in SAME:
        if given.get(each) is not None and (is_file or each not in ("reply_to", "message_id")):
            fields[each] = given[each]
    headers = dict(given.get("headers") or {})
    for field, header in HEADERS:
        if is_file and isinstance(headers.get(header), str):
            fields[field] = headers.pop(header)
    if headers:
        fields["headers"] = headers
    timestamp = given.get("timestamp")
    if timestamp is not None:
        fields["timestamp"] = timestamp[1] if isinstance(timestamp, tuple) else timestamp
    for each in TEXTS:
        if each in fields and not isinstance(fields[each], str):
            del fields[each]  # octets that are no UTF-8
    return fields
