"""Metrics for Prometheus."""

from .answers import Answer
from .call import Call


def aggregated(call: Call) -> Answer:
    return Answer(200, b"", kind="text/plain; version=0.0.4; charset=utf-8")


per_object = detailed = aggregated
