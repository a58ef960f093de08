"""The product's name and version, for the greeting of a connection and for management."""

PRODUCT = "Leveret"

VERSION = "0.1.0"
