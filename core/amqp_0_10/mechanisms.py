"""The SASL mechanisms that a 0-10 connection offers, in the order in which peers should try them."""

from ..access import sasl
from ..parts import part

external = part("access.sasl_external")
MECHANISMS = (sasl.Plain, sasl.Scram) + (() if external is None else (external.External,)) + (sasl.Anonymous,)
