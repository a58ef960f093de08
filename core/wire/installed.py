"""Who is registered when a broker is made: the folders that have a family, as far as this build carries them (boards/, `dialects`)."""

from ..parts import part
from .registry import FAMILIES

# Files that register a family, or several, when they are imported.
FILES = ("amqp_0_9.family", "amqp_1_0.family", "amqp_0_10.family", "amqp_0_9.older_family")

for file in FILES:
    part(file)
if not FAMILIES and part("amqp_0_9.drafts.family") is None:  # drafts are served where a listener names them
    raise ImportError("this build carries no family of protocols")
