"""Brokers whose engine is of a certain form: those made within `in_form(form)`."""

import contextlib

from leveret.core.broker import engine


@contextlib.contextmanager
def in_form(form):
    """Brokers made meanwhile have their engine in this form; later ones, as before."""
    before, engine.chosen = engine.chosen, form
    try:
        yield
    finally:
        engine.chosen = before
