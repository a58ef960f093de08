"""The states of a client's connection (0-9-1 section 2.2.4) and of its channels (sections 2.2.5 and 4.2.6). Rows as in core/states.py;
methods by their names, an input that is no method's name comes from this side or is a frame of a content."""

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

# Actions: channel.py. Given: of a frame its row of METHODS (None: no method), the octets, where its arguments or its payload begin, and
# their end; of a content header the size of its frame too. `content_begins` is basic.deliver, basic.return or basic.get-ok: its code stands
# in place of the row. `close` gives a reply code and a text. What the broker sent before it saw our channel.close is discarded (section
# 1.5.2.5).
CHANNEL = (
    ("open", "content_begins", "header", "begin_content"),
    ("header", "content_header", "body", "on_content_header"),
    ("body", "content_body", "body", "on_content_body"),
    ("body", "content_ends", "open", "end_content"),
    ("closed", "open", "opening", "send_open"),
    ("*", "open", "*", "!channel-error"),
    ("opening", "channel_open_ok", "open", "on_reply"),
    ("opening", "channel_close", "closed", "on_close"),
    ("open", "channel_close", "closed", "on_close"),
    ("open", "channel_flow", "open", "on_flow"),
    ("open", "basic_cancel", "open", "on_cancel"),
    ("open", "close", "closing", "send_close"),
    ("header", "close", "closing", "send_close"),
    ("body", "close", "closing", "send_close"),
    ("open", "content_*", "open", "!unexpected-frame"),
    ("open", "*", "open", "on_reply"),
    ("header", "*", "header", "!unexpected-frame"),
    ("body", "*", "body", "!unexpected-frame"),
    ("closing", "channel_close_ok", "closed", "on_reply"),
    ("closing", "channel_close", "closing", "on_close_too"),
    ("closing", "*", "closing", "ignore"),
    ("*", "content_header", "*", "ignore"),
    ("*", "content_body", "*", "ignore"),
    ("*", "*", "*", "!channel-error"),
)
