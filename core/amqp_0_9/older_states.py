"""The states of a channel of AMQP 0-8, 0-9 and the drafts: those of 0-9-1 (states.py), and the contents of the classes file and stream."""

from .states import CHANNEL

# Actions: older_actions.py. Given: as those of CHANNEL, whose rows stand behind these. `stage`: file.stage has come, its header has not.
CONTENTS = (
    ("open", "stream_publish", "header", "publish_stream"),
    ("open", "file_stage", "stage", "stage"),
    ("open", "file_publish", "body", "publish_file"),
    ("stage", "content_header", "body", "stage_header"),
    ("stage", "connection_*", "stage", "!command-invalid"),
    ("stage", "release", "closing", "release"),
    ("stage", "*", "stage", "!unexpected-frame"),
)

OLDER_CHANNEL = CONTENTS + CHANNEL
