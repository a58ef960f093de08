"""The states of the client's connection, which has one session, on channel 0.

Rows as in core/states.py. Inputs: the peer's controls by their names in spec_0_10.CONTROLS; `header`, the eight octets that begin a
connection; `command`, a frame of a command; `shut`, `error` and `begin` come
from this side. "asking": a session that is to live beyond its connection asks what its peer knows of it.
"""

# Actions: client.py. Given: the fields of a control; of a frame its flags, type and payload.
CONNECTION = (
    ("start", "header", "starting", "ignore"),
    ("starting", "connection_start", "tuning", "log_in"),
    ("tuning", "connection_secure", "tuning", "secure"),
    ("tuning", "connection_tune", "opening", "tune"),
    ("opening", "connection_open_ok", "attaching", "attach"),
    ("opening", "connection_redirect", "ended", "redirected"),
    ("attaching", "session_attached", "asking", "attached"),
    ("attaching", "session_detached", "ended", "detached"),
    ("asking", "begin", "open", "begin"),
    ("asking", "session_expected", "open", "go_on"),
    ("asking", "session_timeout", "asking", "timeout"),
    ("asking", "session_command_point", "asking", "command_point"),
    ("asking", "session_completed", "asking", "completed"),
    ("asking", "session_known_completed", "asking", "known_completed"),
    ("asking", "session_flush", "asking", "flush"),
    ("asking", "session_detach", "ended", "detach"),
    ("asking", "session_detached", "ended", "detached"),
    ("asking", "session_*", "asking", "ignore"),
    ("asking", "command", "asking", "command_frame"),
    ("open", "session_command_point", "open", "command_point"),
    ("open", "session_completed", "open", "completed"),
    ("open", "session_known_completed", "open", "known_completed"),
    ("open", "session_flush", "open", "flush"),
    ("open", "session_detach", "ended", "detach"),
    ("open", "session_detached", "ended", "detached"),
    ("open", "session_*", "open", "ignore"),
    ("open", "command", "open", "command_frame"),
    ("open", "shut", "closing", "send_close"),
    ("closing", "connection_close_ok", "ended", "end"),
    ("closing", "connection_close", "ended", "closed_too"),
    ("closing", "*", "closing", "ignore"),
    ("ended", "*", "ended", "ignore"),
    ("*", "connection_heartbeat", "*", "ignore"),
    ("*", "connection_close", "ended", "closed_too"),
    ("*", "shut", "ended", "end"),
    ("*", "*", "*", "!command-invalid"),
)
