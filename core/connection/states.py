"""The states of a connection before, beside and after its session. Rows as in core/states.py; every input comes from this side."""

# Actions: connection.py. Given: `broke` an error of ours; `close` a text. `octets`: some are in the receive buffer; `known`: a family has
# matched the first of them; `drained`: the send buffer is empty; `end`, `linger`: no more input is read, and the stream ends when all is
# sent, or later, when the peer closes it or has had its time; `over`: the stream has ended.
CONNECTION = (
    ("served", "octets", "served", "serve"),
    ("sniffing", "octets", "sniffing", "sniff"),
    ("sniffing", "known", "served", "serve"),
    ("served", "close", "served", "shut"),
    ("served", "broke", "served", "apologize"),
    ("served", "over", "closed", "lose"),
    ("ending", "drained", "closed", "release"),
    ("closed", "*", "closed", "ignore"),
    ("*", "end", "ending", "stop"),
    ("*", "linger", "lingering", "stop"),
    ("sniffing", "close", "closed", "release"),
    ("*", "over", "closed", "release"),
    ("*", "broke", "closed", "release"),
    ("*", "octets", "*", "discard"),
    ("*", "*", "*", "ignore"),
)
