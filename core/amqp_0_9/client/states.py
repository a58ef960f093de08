"""The states of a client's connection (0-9-1 section 2.2.4). Rows as in core/states.py; methods by their names, what is not one comes from
this side."""

# Actions: client.py. Given: a method's arguments; `close` gives a reply code and a text. What the broker sent before it saw our
# connection.close is discarded (section 1.4.2.8).
CONNECTION = (
    ("start", "connection_start", "tune", "on_start"),
    ("tune", "connection_tune", "opening", "on_tune"),
    ("opening", "connection_open_ok", "open", "on_open_ok"),
    ("open", "connection_blocked", "open", "on_blocked"),
    ("open", "connection_unblocked", "open", "on_unblocked"),
    ("open", "close", "closing", "send_close"),
    ("closing", "connection_close_ok", "ended", "on_close_ok"),
    ("closing", "close", "closing", "ignore"),
    ("ended", "close", "ended", "ignore"),
    ("*", "close", "ended", "finish"),
    ("*", "connection_close", "ended", "on_close"),
    ("closing", "*", "closing", "ignore"),
    ("*", "*", "*", "!command-invalid"),
)
