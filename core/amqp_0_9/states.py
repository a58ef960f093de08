"""The states of a 0-9-1 connection and of its channels (sections 2.2.4, 2.2.5 of the specification, 1.4 and 1.5 of its reference).

Rows as in core/states.py. Inputs: methods by their names in METHODS; `content_header` and `content_body`, frames of a channel; all others
come from this side. A frame on a channel is an input of the channel while the connection is open, else it is `on_channel` of the
connection.
"""

# Actions: handshake.py. Given: the session; of a frame its channel number, its row of METHODS (None: no method), the octets, where the
# payload begins (a method's arguments do), and its end.
CONNECTION = (
    ("start", "connection_start_ok", "login", "start_ok"),
    ("login", "challenge", "secure", "ask"),  # no frame is read in this state
    ("login", "accepted", "tune", "propose"),
    ("login", "refused", "login", "refused"),
    ("secure", "connection_secure_ok", "login", "secure_ok"),
    ("tune", "connection_tune_ok", "opening", "tune_ok"),
    ("opening", "connection_open", "open", "open_"),
    ("open", "connection_close", "closing", "close"),
    ("open", "connection_update_secret", "open", "update_secret"),
    ("open", "connection_close_ok", "open", "!channel-error"),
    ("open", "connection_*", "open", "!not-allowed"),
    ("open", "channel_*", "open", "!channel-error"),
    ("open", "shut", "closing", "force"),
    ("closing", "connection_close_ok", "closing", "finish"),
    ("closing", "connection_close", "closing", "close_too"),
    ("closing", "late", "closing", "finish"),
    ("closing", "error", "closing", "end"),
    ("closing", "*", "closing", "ignore"),
    ("*", "error", "closing", "send_close"),
    ("*", "shut", "*", "finish"),
    ("*", "late", "*", "finish"),
    ("*", "content_*", "*", "!unexpected-frame"),
    ("*", "on_channel", "*", "!channel-error"),
    ("*", "*", "*", "!command-invalid"),
)

# Actions: verbs.py. Given: the session, the channel; of a frame its row of METHODS, the octets, where the payload begins, and its end.
CHANNEL = (
    ("open", "basic_publish", "header", "publish"),
    ("header", "content_header", "body", "header"),
    ("body", "content_body", "body", "begin_body"),
    ("body", "content_end", "open", "end_content"),
    ("*", "connection_*", "*", "!command-invalid"),
    ("open", "content_*", "open", "!unexpected-frame"),
    ("open", "channel_open", "open", "!channel-error"),
    ("open", "channel_close_ok", "open", "!channel-error"),
    ("open", "release", "closing", "release"),
    ("open", "*", "open", "request"),
    ("header", "release", "closing", "release_content"),
    ("header", "*", "header", "!unexpected-frame"),
    ("body", "release", "closing", "release_content"),
    ("body", "*", "body", "!unexpected-frame"),
    ("closing", "channel_close_ok", "closed", "closed"),
    ("closing", "channel_close", "closed", "closed_too"),
    ("*", "release", "*", "drop_returns"),
    ("closing", "*", "closing", "ignore"),
    ("closed", "channel_open", "open", "open_channel"),
    ("closed", "channel_close_ok", "closed", "ignore"),
    ("closed", "*", "closed", "!channel-error"),
)
