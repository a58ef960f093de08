"""Brokers whose engine is of a certain form: those made within `in_form(form)`."""

import contextlib

from leveret.core.broker import engine

# Queues with rules, which every form has to keep alike.
QUEUES = (
    ("q", {}),
    ("short", {"x-max-length": 5}),
    ("few", {"x-max-length": 3, "x-overflow": "reject-publish"}),
    ("old", {"x-message-ttl": 300}),
    ("ranked", {"x-max-priority": 5}),
    ("dead", {"x-max-length": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}),
)


class Ingestless(engine.Plain):
    """Every frame goes by its session."""

    name = "plain Python, frame by frame"
    ingests = False


@contextlib.contextmanager
def in_form(form):
    """Brokers made meanwhile have their engine in this form; later ones, as before."""
    before, engine.chosen = engine.chosen, form
    try:
        yield
    finally:
        engine.chosen = before
