"""Why a row of features costs what it costs, where it may miss a goal: tests/measure/README.md says so of each row that does.

What is said here was seen in a profile of the broker or follows from the CPU times beside the table.
"""

REASONS = {
    "groups": "In C (c_accel/groups.c), but for groups whose value is no ASCII text.",
    "last_value": "In C (c_accel/latest.c); a value that comes twice in one pass is a call of C more.",
    "expired_dead": "A dead letter is a second message, made, queued and logged: in C (c_accel/letters.c) 6 us, in plain Python 105.",
    "over_length_dead": "As a dead letter of a lifetime.",
    "rejected_dead": "As a dead letter of a lifetime, behind a delivery.",
    "returned": "Each message is delivered twice, and returned where acknowledgements are taken: in C.",
    "get_one": "A round trip for each message: the clients' own processor time and the kernel's wake-ups are most of it, for every broker.",
    "transactions": "One sync, and a commit and its answer in Python, for ten messages: 12 us each. See LIMITS.md.",
    "stream": "A sync for each window of 200, as without arguments; RabbitMQ's streams confirm without one. See LIMITS.md.",
    "stream_publish": "As a stream that is read at its end.",
    "replies": "Requests, their deliveries and their replies go through C, where one channel of a connection makes requests.",
    "replies_one": "Two round trips for each request: the clients' own processor time and the kernel's wake-ups are most of it.",
    "turns": "Each message is two turns of its connection in Python, before and behind the sync, with a read and a send.",
    "queues_1000": "Each queue's few messages are a turn of their own.",
    "cycles": "Declaring, binding, consuming and deleting are Python for everybody's sake (control plane); a cycle is seven frames.",
    "beyond_fill": "A persistent message over its queue's share passes by memory in C, one with a lifetime or for rules in Python.",
    "beyond_drain": "Messages come back in C behind the first of each record; the rest is the reading of the log, and its CRC.",
}
