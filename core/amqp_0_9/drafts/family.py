"""The two drafts of 2005 among the families of protocols (core/wire/family.py). Each begins with the same octets as a published version
that clients of today send, and the server speaks first: so a draft is served where a listener names it (`?version=`), and nowhere else.
"""

from ...parts import needed
from ...wire.registry import FAMILIES


def families(version):
    """The families of a listener that names a draft, which is asked first. Raises not-implemented where this build does not carry it."""
    return [needed("amqp_0_9.drafts.family_" + version.replace(".", "_"), "AMQP " + version).FAMILY] + FAMILIES
