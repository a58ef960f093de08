"""Who is registered when a broker is made: the folders that have a family, as far as this build carries them (boards/, `dialects`)."""

from ..parts import part
from .registry import FAMILIES

FOLDERS = ("amqp_0_9", "amqp_1_0", "amqp_0_10")  # each with a family.py, which registers its family when it is imported

for folder in FOLDERS:
    part(folder + ".family")
if not FAMILIES:
    raise ImportError("this build carries no family of protocols")
