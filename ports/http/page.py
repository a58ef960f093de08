"""The page at /: four files beside this one, without a build step and without anything from elsewhere (README.md)."""

import pathlib

from .answers import Answer
from .call import Call

FOLDER = pathlib.Path(__file__).parent / "page_files"
KINDS = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}


def answered(name: str) -> Answer:
    """A file."""
    return Answer(200, (FOLDER / name).read_bytes(), kind=KINDS[name.rpartition(".")[2]])


def index(call: Call) -> Answer:
    """/."""
    return answered("index.html")


def no_icon(call: Call) -> Answer:
    """/favicon.ico, which browsers ask for."""
    return Answer(204)


def moved(call: Call) -> Answer:
    """/api, where RabbitMQ has its manual: the page."""
    return Answer(301, headers=(("location", "/"),))


def script(call: Call) -> Answer:
    """/page.js."""
    return answered("page.js")


def views(call: Call) -> Answer:
    """/views.js."""
    return answered("views.js")


def style(call: Call) -> Answer:
    """/page.css."""
    return answered("page.css")
