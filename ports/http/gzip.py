"""Answers in gzip (RFC 1952) for peers that ask for it: piece by piece, in a window of 4 KiB, so that 32 answers take 1 MiB together."""

import zlib
from collections.abc import Iterator

from .answers import Answer, Piece

LEAST = 1024  # octets of an answer that is worth it
WINDOW = 12 + 16  # 4 KiB, with the head of gzip
LEVEL, MEMORY = 1, 5


def is_asked_for(header: str) -> bool:
    """True when Accept-Encoding has gzip, and does not forbid it (RFC 9110 section 12.5.3)."""
    for each in header.lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "").rstrip("0.") != "q="
    return False


def made(answer: Answer) -> Answer:
    """The same answer in gzip, where that is worth it."""
    body = answer.body
    if answer.status != 200 or isinstance(body, bytes) and len(body) < LEAST:
        return answer
    pieces = iter((body,)) if isinstance(body, bytes) else body
    return Answer(answer.status, squeezed(pieces), (*answer.headers, ("content-encoding", "gzip")), answer.kind, answer.number)


def squeezed(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The pieces of a body, compressed."""
    squeezer = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW, MEMORY)
    for piece in pieces:
        yield None if piece is None else squeezer.compress(piece)
    yield squeezer.flush()
