"""Leveret for Spark: `register(spark)` makes `format("amqp")` known to a session (see source.py)."""
from .source import register

__all__ = ["register"]
