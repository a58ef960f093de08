"""The states of a 0-9-1 connection and of its channels (sections 2.2.4, 2.2.5 of the specification, 1.4 and 1.5 of its reference).

Rows as in core/states.py. Inputs: methods by their names in METHODS; `content_header` and `content_body`, frames of a channel; all others
come from this side. A frame on a channel is an input of the channel while the connection is open, of the connection before.
"""

# Actions: handshake.py. Given: the session; of a method its channel number, its row of METHODS, the octets, where its arguments begin, end.
CONNECTION = (
    ("closing", "error", "closing", "end"),
    ("*", "error", "closing", "send_close"),
    ("open", "shut", "closing", "force"),
    ("closing", "shut", "closing", "ignore"),
    ("*", "shut", "*", "finish"),
    ("*", "late", "*", "finish"),
    ("start", "connection_start_ok", "login", "start_ok"),
    ("start", "*", "start", "unexpected"),
    ("login", "challenge", "secure", "ask"),  # no frame is read in this state
    ("login", "accepted", "tune", "propose"),
    ("login", "refused", "login", "refused"),
    ("secure", "connection_secure_ok", "login", "secure_ok"),
    ("secure", "*", "secure", "unexpected"),
    ("tune", "connection_tune_ok", "opening", "tune_ok"),
    ("tune", "*", "tune", "unexpected"),
    ("opening", "connection_open", "open", "open_"),
    ("opening", "*", "opening", "unexpected"),
    ("open", "connection_close", "closing", "close"),
    ("open", "connection_update_secret", "open", "update_secret"),
    ("open", "connection_close_ok", "open", "unasked"),
    ("open", "connection_*", "open", "once"),
    ("open", "*", "open", "misplaced"),
    ("closing", "connection_close_ok", "closing", "finish"),
    ("closing", "connection_close", "closing", "close_too"),
    ("closing", "*", "closing", "ignore"),
)

# Actions: verbs.py. Given: the session, the channel (its number where it is closed); of a frame its row of METHODS (None: no method), the
# octets, where the payload begins (a method's arguments do), and its end.
CHANNEL = (
    ("open", "basic_publish", "header", "publish"),
    ("header", "content_header", "body", "header"),
    ("body", "content_body", "body", "begin_body"),
    ("body", "content_end", "open", "end_content"),
    ("open", "connection_*", "open", "misplaced"),
    ("open", "content_*", "open", "unannounced"),
    ("open", "release", "closing", "release"),
    ("open", "*", "open", "request"),
    ("header", "release", "closing", "release_content"),
    ("header", "connection_*", "header", "misplaced"),
    ("header", "content_*", "header", "unannounced"),
    ("header", "*", "header", "unexpected"),
    ("body", "release", "closing", "release_content"),
    ("body", "connection_*", "body", "misplaced"),
    ("body", "content_*", "body", "unannounced"),
    ("body", "*", "body", "unexpected"),
    ("closing", "channel_close_ok", "closed", "closed"),
    ("closing", "channel_close", "closed", "closed_too"),
    ("closing", "release", "closing", "drop_returns"),
    ("closing", "connection_*", "closing", "misplaced"),
    ("closing", "*", "closing", "ignore"),
    ("closed", "release", "closed", "drop_returns"),
    ("closed", "channel_open", "open", "open_channel"),
    ("closed", "channel_close_ok", "closed", "ignore"),
    ("closed", "connection_*", "closed", "misplaced"),
    ("closed", "content_*", "closed", "not_open_content"),
    ("closed", "*", "closed", "not_open"),
)
