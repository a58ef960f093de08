"""What this is called, and which one it is: for the greeting of a connection and for management."""

PRODUCT = "Leveret"

VERSION = "0.1.0"
