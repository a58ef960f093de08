"""The SASL mechanisms that every family offers, in the order in which peers should try them."""

from ..parts import part
from . import sasl

external = part("access.sasl_external")
MECHANISMS = (sasl.Plain, sasl.Scram) + (() if external is None else (external.External,)) + (sasl.Anonymous,)
