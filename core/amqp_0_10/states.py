"""The states of a 0-10 connection and of its sessions.

Rows as in core/states.py. Inputs: controls by their names in spec_0_10.CONTROLS; `header`, the eight octets that begin a connection;
`command`, a frame of track 1; all others come from this side. A control of class session, and a command, is an input of the session on its
channel while the connection is open.
"""

# Actions: handshake.py. Given: the protocol; of a control its channel and its fields.
CONNECTION = (
    ("start", "header", "starting", "begin"),
    ("starting", "connection_start_ok", "login", "start_ok"),
    ("login", "challenge", "challenged", "ask"),  # no frame is read in this state
    ("login", "accepted", "tuning", "propose"),
    ("login", "refused", "ended", "refused"),
    ("challenged", "connection_secure_ok", "login", "secure_ok"),
    ("tuning", "connection_tune_ok", "opening", "tune_ok"),
    ("tuning", "connection_close", "closing", "close"),
    ("opening", "connection_open", "open", "open_"),
    ("opening", "connection_heartbeat", "opening", "ignore"),
    ("opening", "connection_close", "closing", "close"),
    ("open", "connection_heartbeat", "open", "ignore"),
    ("open", "connection_close", "closing", "close"),
    ("open", "session_attach", "open", "attach"),
    ("open", "session_detach", "open", "detach_nothing"),
    ("open", "session_detached", "open", "ignore"),
    ("open", "session_attached", "open", "ignore"),
    ("open", "session_*", "open", "not_attached"),
    ("open", "command", "open", "not_attached"),
    ("open", "shut", "closing", "force"),
    ("open", "error", "closing", "send_close"),
    ("tuning", "error", "closing", "send_close"),
    ("opening", "error", "closing", "send_close"),
    ("closing", "connection_close_ok", "ended", "finish"),
    ("closing", "connection_close", "ended", "close_too"),
    ("closing", "error", "ended", "end"),
    ("*", "shut", "ended", "end"),
    ("*", "late", "ended", "end"),
    ("*", "error", "ended", "end"),
    ("closing", "*", "closing", "ignore"),
    ("ended", "*", "ended", "ignore"),
    ("*", "*", "*", "!command-invalid"),
)

# Actions: mapping.py. Given: the session; of a control its fields; of a frame of a command its flags, its type, the octets, where its
# payload begins, and its end.
SESSION = (
    ("attached", "session_attach", "attached", "attach"),
    ("attached", "session_attached", "attached", "ignore"),
    ("attached", "session_detach", "detached", "detach"),
    ("attached", "session_detached", "detached", "detached"),
    ("attached", "session_request_timeout", "attached", "request_timeout"),
    ("attached", "session_timeout", "attached", "ignore"),
    ("attached", "session_command_point", "attached", "command_point"),
    ("attached", "session_expected", "attached", "expected"),
    ("attached", "session_confirmed", "attached", "confirmed"),
    ("attached", "session_completed", "attached", "completed"),
    ("attached", "session_known_completed", "attached", "known_completed"),
    ("attached", "session_flush", "attached", "flush"),
    ("attached", "session_gap", "attached", "gap"),
    ("attached", "command", "attached", "command"),
    ("attached", "error", "detaching", "send_exception"),
    ("attached", "unknown", "detached", "send_unknown"),
    ("attached", "release", "detached", "release"),
    ("attached", "lose", "away", "lose"),
    ("away", "attach", "attached", "come_back"),
    ("away", "lose", "away", "ignore"),
    ("away", "error", "away", "fail"),
    ("away", "release", "detached", "release"),
    ("failing", "session_detach*", "detached", "detach_failed"),
    ("failing", "lose", "away", "lose"),
    ("failing", "release", "detached", "release"),
    ("failing", "*", "failing", "ignore"),
    ("*", "lose", "detached", "ignore"),
    ("detaching", "session_detached", "detached", "ended"),
    ("detaching", "session_detach", "detached", "detach"),
    ("detaching", "*", "detaching", "ignore"),
    ("*", "release", "detached", "ignore"),
    ("*", "*", "*", "!command-invalid"),
)

# Of a branch of a distributed transaction. Actions: branches.py. Given: the branch.
BRANCH = (
    ("active", "prepare", "prepared", "log_places"),
    ("active", "decide", "decided", "log"),
    ("prepared", "decide", "decided", "log"),
    ("*", "*", "*", "!illegal-state"),
)
