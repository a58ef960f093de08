"""The configuration of the broker that is attacked: small limits, an honest user, and users of the attackers' with few rights."""

from peer import PASSWORD

DISK_MAX = 64 << 20

LIMITS = """
[limits]
connection_count_max = 96
channel_max = 128
channel_count_max = 512
receive_buffer_size = 65536
send_buffer_size = 65536
properties_size_max = 16384
content_size_max = 1048576
content_timeout_ms = 5000
arena_size = 16777216
message_count_max = 16384
entry_count_max = 32768
chunk_count_max = 8192
queue_count_max = 160
queue_share_max = 96
exchange_count_max = 64
binding_count_max = 2048
binding_share_max = 1536
policy_count_max = 32
consumer_count_max = 512
route_count_max = 1024
login_timeout_ms = 5000
login_pause_ms = 100
login_refusal_ms = 5000
password_rounds = 100
user_count_max = 32
link_count_max = 1024
target_count_max = 32
granted_count_max = 64
waiting_count_max = 8192
transaction_count_max = 8192
offset_count_max = 512
identity_count_max = 16384
login_address_max = 256
session_timeout_s = 8
"""
RIGHTS = "^(mallory.*|amq\\\\..*)$"
USERS = (
    ("honest", "", "^(honest.*|amq\\\\.default)$"),
    ("mallory", "", RIGHTS),
    ("watcher", "monitoring", RIGHTS),
    ("policymaker", "policymaker", RIGHTS),
    ("root", "administrator", ".*"),
)


def toml():
    """The configuration file."""
    users = [
        f'[[user]]\nname = "{name}"\npassword = "{PASSWORD}"\ntags = {[tags] if tags else []}\n'
        f'configure = "{rights}"\nwrite = "{rights}"\nread = "{rights}"\n'.replace("'", '"')
        for name, tags, rights in USERS
    ]
    return LIMITS + "".join(users)
