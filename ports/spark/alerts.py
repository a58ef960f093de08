"""Alerts as messages: each reading of a batch whose score is an alarm, one JSON object, exactly once (sink.publish_epoch).

{"gateway", "device", "metric", "time", "value", "unit", "score", "sequence", "stream", "offset", "part"}; message_id is a hash of
stream, offset, part and time: the same alert has the same id whatever happens.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from .options import sink_login
from .sink import publish_epoch
from .tables import Tables

FIELDS = ("gateway", "device", "metric", "value", "unit", "score", "sequence", "stream", "offset", "part")


def publisher(options: Mapping[str, Any], tables: Tables, retry_s: float) -> Callable[[int, Any], None]:
    """publish(batch, alerts) for job.BatchWriter, by the sink's options (lower-case names). The epochs belong to the tables' folder."""
    login = sink_login(options)
    exchange, key, folder = options.get("exchange", ""), options["routingkey"], tables.identity()

    def publish(batch: int, alerts: Any) -> None:
        publish_epoch(login, folder, batch, [(exchange, key) + message(row) for row in alerts.to_pylist()], retry_s=retry_s)

    return publish


def message(row: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """(body, properties) of one alert."""
    alert = {name: row[name] for name in FIELDS}
    alert["time"] = row["time"].timestamp()
    identity = hashlib.sha256(f"{row['stream']}|{row['offset']}|{row['part']}|{alert['time']}".encode()).hexdigest()[:40]
    properties: dict[str, Any] = {"content_type": "application/json", "delivery_mode": 2, "message_id": identity, "type": "alert"}
    if row["gateway"] is not None:
        properties["headers"] = {"x-gateway": row["gateway"]}
    return json.dumps(alert).encode(), properties
