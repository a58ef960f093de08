"""Leveret for Spark: `register(spark)` makes `format("amqp")` known to a session (see source.py)."""

try:
    from .source import register
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] == "leveret":
        raise
    raise ModuleNotFoundError(
        f"Leveret's part for Spark needs {error.name}, which this Python does not have: pip install 'leveret[spark]' "
        "(in a clone: .venv/bin/pip install '.[spark]')",
        name=error.name,
    ) from None

__all__ = ["register"]
