"""The eight octets that a connection of AMQP 0-10 begins with, here apart from the tables for who has no peer of it yet."""

HEADER = b"AMQP\x01\x01\x00\x0a"
