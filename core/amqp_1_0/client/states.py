"""The states of a client's connection, session and links (sections 2.4.6, 2.5.5 and 2.6; the log-in: part 5, section 5.3.2). Rows as in
core/states.py; performatives and frames of the log-in by their names, what is not one comes from this side."""

# Actions: client.py. Given: the fields of a performative or frame; `shut` gives a condition and a text. What the peer sent before it saw
# our close is discarded (section 2.4.3).
CONNECTION = (
    ("start", "header-sasl", "mechanisms", "ignore"),
    ("mechanisms", "sasl-mechanisms", "login", "on_mechanisms"),
    ("login", "sasl-challenge", "login", "on_challenge"),
    ("login", "sasl-outcome", "header", "on_outcome"),
    ("header", "header-amqp", "opening", "ignore"),
    ("opening", "open", "open", "on_open"),
    ("opening", "close", "ended", "on_close"),
    ("open", "close", "ended", "on_close"),
    ("open", "shut", "closing", "send_close"),
    ("closing", "close", "ended", "on_close_answered"),
    ("ended", "shut", "ended", "ignore"),
    ("closing", "*", "closing", "ignore"),
    ("*", "shut", "ended", "finish"),
    ("*", "*", "*", "!command-invalid"),
)

# Actions: session.py. Given: the fields of a performative, and the payload behind a transfer. The client has one session, and ends it with
# the connection.
SESSION = (
    ("unmapped", "map", "begin sent", "send_begin"),
    ("begin sent", "begin", "mapped", "on_begin"),
    ("mapped", "flow", "mapped", "on_flow"),
    ("mapped", "attach", "mapped", "on_attach"),
    ("mapped", "transfer", "mapped", "on_transfer"),
    ("mapped", "disposition", "mapped", "on_disposition"),
    ("mapped", "detach", "mapped", "on_detach"),
    ("mapped", "end", "unmapped", "on_end"),
    ("*", "*", "*", "!command-invalid"),
)

# Actions: link.py. Given: the fields of a performative, and the payload behind a transfer. `attach-refused`: an attach without the terminus
# that was asked for; a detach says why (section 2.6.3).
LINK = (
    ("detached", "join", "attaching", "send_attach"),
    ("attaching", "attach", "attached", "on_attach"),
    ("attaching", "attach-refused", "refused", "ignore"),
    ("refused", "detach", "detached", "on_detach"),
    ("attaching", "detach", "detached", "on_detach"),
    ("attached", "flow", "attached", "on_flow"),
    ("attached", "transfer", "attached", "on_transfer"),
    ("attached", "detach", "detached", "on_detach"),
    ("attached", "leave", "detaching", "send_detach"),
    ("attaching", "leave", "detaching", "send_detach"),
    ("detaching", "detach", "detached", "on_detach_answered"),
    ("detaching", "*", "detaching", "ignore"),
    ("refused", "*", "refused", "ignore"),
    ("detached", "leave", "detached", "ignore"),
    ("*", "*", "*", "!command-invalid"),
)
