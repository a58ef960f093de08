"""The states of a serial link's session, at both ends of a line, and of the turns on a line that stations share. Rows as in
core/states.py; frames within a session need no look-up."""

# Actions: link.py. Given: of a greeting its fields. `welcome`: a WELCOME of the session that this end knows; `other`: of another one;
# `lost`: an END, silence, or a peer that breaks the rules; `leave`: this end is done with the session; `over`: the line is gone for good.
ACTIVE = (
    ("opening", "welcome", "open", "begin_session"),
    ("opening", "other", "open", "begin_session"),
    ("open", "welcome", "open", "heard"),
    ("open", "other", "opening", "lose_session"),
    ("open", "lost", "opening", "lose_session"),
    ("open", "leave", "ended", "leave_session"),
    ("*", "over", "ended", "end_session"),
    ("*", "*", "*", "ignore"),
)

# Actions: link.py. Given: of `hello` the greeting's fields. `again`: a HELLO of the session that this end knows; `unknown`: any other one,
# and behind it `hello` where it asks for a new session; `noise`: octets that are no frame; the others as above.
PASSIVE = (
    ("waiting", "hello", "open", "begin_session"),
    ("open", "again", "open", "heard"),
    ("open", "unknown", "waiting", "lose_session"),
    ("open", "lost", "waiting", "lose_session"),
    ("open", "leave", "waiting", "leave_session"),
    ("waiting", "noise", "waiting", "call"),
    ("*", "over", "ended", "end_session"),
    ("*", "*", "*", "ignore"),
)

# Actions: bus.py. Given: of `due` the place of a link. `due`: a link has something to say or to ask; `passed`: its last frame is on the
# line, and the station may speak; `returned`: the station has passed the turn back; `silent`: it has said nothing for `silence_ms`.
BUS = (
    ("idle", "due", "speaking", "give_turn"),
    ("speaking", "passed", "listening", "listen"),
    ("listening", "returned", "idle", "end_turn"),
    ("listening", "silent", "idle", "miss_turn"),
    ("*", "unplugged", "idle", "drop_turn"),
    ("*", "*", "*", "ignore"),
)
