"""The states of a 1.0 connection (sections 2.4.6 and 5.3), of its sessions (2.5.5) and of their links (2.6).

Rows as in core/states.py. Inputs: performatives and SASL frames by their names in spec_1_0.COMPOSITES; `header-amqp`, `header-sasl`,
`header-tls` and `header-other`, the eight octets that begin a layer; all others come from this side. A frame of a channel is an input of
the session on it while the connection is open.
"""

# Actions: opening.py. Given: the protocol; of a frame its channel, its fields, the octets, where the payload begins, and its end.
CONNECTION = (
    ("start", "header-sasl", "mechanisms", "offer"),
    ("start", "header-amqp", "opening", "without_sasl"),
    ("mechanisms", "sasl-init", "login", "sasl_init"),
    ("login", "challenge", "challenged", "ask"),  # no frame is read in this state
    ("login", "accepted", "header", "admit"),
    ("login", "refused", "ended", "refused"),
    ("challenged", "sasl-response", "login", "sasl_response"),
    ("header", "header-amqp", "opening", "exchange"),
    ("*", "header-tls", "ended", "no_tls"),
    ("*", "header-*", "ended", "other_header"),
    ("opening", "open", "open", "open_"),
    ("open", "begin", "open", "begin"),
    ("open", "close", "closing", "close"),
    ("closing", "close", "ended", "finish"),
    ("closing", "error", "ended", "end"),
    ("ended", "close", "ended", "ignore"),
    ("open", "shut", "closing", "force"),
    ("open", "error", "closing", "send_close"),
    ("opening", "error", "closing", "refuse_open"),
    ("*", "shut", "ended", "end"),
    ("*", "late", "ended", "end"),
    ("*", "error", "ended", "end"),
    ("closing", "*", "closing", "ignore"),
    ("ended", "*", "ended", "ignore"),
    ("*", "*", "*", "!command-invalid"),
)

# Actions: mapping.py. Given: the session; of a frame its fields, the octets, where the payload begins, and its end.
SESSION = (
    ("mapped", "attach", "mapped", "attach"),
    ("mapped", "flow", "mapped", "flow"),
    ("mapped", "transfer", "mapped", "transfer"),
    ("mapped", "disposition", "mapped", "disposition"),
    ("mapped", "detach", "mapped", "detach"),
    ("mapped", "end", "ended", "end"),
    ("mapped", "error", "discarding", "send_end"),
    ("mapped", "release", "ended", "release"),
    ("discarding", "end", "ended", "ended"),
    ("discarding", "*", "discarding", "ignore"),
    ("*", "release", "ended", "ignore"),
    ("*", "*", "*", "!command-invalid"),
)

# Actions: detaching.py. Given: the link; of a frame its fields, the octets, where the payload begins, and its end.
LINK = (
    ("attached", "flow", "attached", "flow"),
    ("attached", "transfer", "attached", "transfer"),
    ("attached", "detach", "detached", "detach"),
    ("attached", "error", "detaching", "send_detach"),
    ("attached", "release", "detached", "release"),
    ("detaching", "detach", "detached", "detached"),
    ("detaching", "release", "detached", "ignore"),
    ("detaching", "*", "detaching", "ignore"),
    ("detached", "release", "detached", "ignore"),  # an error of ours came before the session forgot it
    ("*", "*", "*", "!command-invalid"),
)
