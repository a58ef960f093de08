"""What a broker says of itself in connection.start beside its name and version: for people who look at a connection, as with RabbitMQ.

A board may leave this out.
"""

from .shim import platform

COPYRIGHT = "Copyright (c) 2026 the Leveret authors"
INFORMATION = "Licensed under the Apache License 2.0"


def properties(broker):
    """The server properties platform, copyright, information and cluster_name (section 1.4.2.1.3)."""
    name = broker.name if broker.cluster_name is None else broker.cluster_name
    return {"platform": platform(), "copyright": COPYRIGHT, "information": INFORMATION, "cluster_name": name}
