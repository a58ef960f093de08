"""tools/generate_spec.py writes the protocol tables that a specification says: here of small ones. The leg `shared` compares the whole."""

import json

import pytest

from leveret.tools import generate_spec

FIELDS = [{"name": "reserved-1", "type": "short"}, {"name": "queue-name", "type": "path"}, {"name": "no-wait", "type": "bit"}]
SPECIFICATION = {
    "header": [65, 77, 81, 80, 0, 0, 9, 1],
    "domains": {"short": "short", "path": "shortstr", "bit": "bit", "peer-properties": "table", "octet": "octet", "timestamp": "timestamp"},
    "classes": [
        {
            "name": "queue",
            "id": 50,
            "methods": [
                {"name": "un-bind", "id": 50, "fields": FIELDS, "from": ["client"], "content": None, "responses": ["un-bind-ok"]},
                {"name": "un-bind-ok", "id": 51, "fields": [], "from": ["server", "client"], "content": False},
            ],
            "properties": [],
        },
        {
            "name": "basic",
            "id": 60,
            "methods": [{"name": "publish", "id": 40, "fields": FIELDS[:1], "from": ["client"], "content": True, "responses": []}],
            "properties": [{"name": "content-type", "type": "path"}, {"name": "headers", "type": "peer-properties"}],
        },
    ],
    "extra_methods_not_in_xml": [
        {"class": "queue", "name": "move-it", "id": 7, "fields": [{"type": "longstr"}], "from": ["server"], "responses": ["a-b", "c"]}
    ],
    "reply_codes": {"not-found": {"value": 404, "class": "soft"}, "frame-error": {"value": 501, "class": "hard"}},
    "extra_reply_codes_not_in_xml": {"no-route": {"value": 312, "class": "soft"}},
}
SPECIFICATION_1_0 = {
    "headers": {"sasl": [65, 3], "amqp": [65, 0]},
    "primitives": [
        {"name": "uint", "encodings": [{"code": 0x70, "category": "fixed", "width": 4}, {"code": 0x43, "category": "fixed", "width": 0}]}
    ],
    "restricted": [
        {"name": "role", "base_type": "boolean", "choices": {"sender": False, "receiver": True}},
        {"name": "mode", "base_type": "ubyte", "choices": {"unsettled": 0, "mixed": 2}},
        {"name": "policy", "base_type": "symbol", "choices": {"never": "never", "in-error": "in-error"}},
        {"name": "handle", "base_type": "uint"},
    ],
    "composites": [
        {"name": "none", "descriptor": {"code": 0x24}, "fields": []},
        {
            "name": "attach",
            "descriptor": {"code": 0x12},
            "fields": [
                {"name": "name", "type": "string", "base_type": "string", "mandatory": True, "multiple": False, "default": None},
                {"name": "role", "type": "role", "base_type": "boolean", "mandatory": True, "multiple": False, "default": None},
                {"name": "mode", "type": "mode", "base_type": "ubyte", "mandatory": False, "multiple": False, "default": "mixed"},
                {"name": "when", "type": "policy", "base_type": "symbol", "mandatory": False, "multiple": True, "default": "never"},
                {"name": "batch", "type": "boolean", "base_type": "boolean", "mandatory": False, "multiple": False, "default": "false"},
                {"name": "top", "type": "handle", "base_type": "uint", "mandatory": False, "multiple": False, "default": "4294967295"},
            ],
        },
    ],
}
SPECIFICATION_0_10 = {
    "header": [65, 77, 81, 80, 1, 1, 0, 10],
    "types": [
        {"name": "uint8", "code": 2, "fixed_width": 1},
        {"name": "str8", "code": 133, "variable_width": 1},
        {"name": "sequence-no", "code": None, "fixed_width": 4},
    ],
    "controls": [
        {
            "class": "session",
            "name": "attach",
            "code16": 513,
            "fields": [
                {"name": "name", "resolved_type": "vbin16"},
                {"name": "command-fragments", "resolved_type": "array", "element_type": "session.command-fragment"},
            ],
        }
    ],
    "commands": [{"class": "queue", "name": "query", "code16": 2052, "result": "queue.queue-query-result", "fields": []}],
    "structs": [
        {"name": "header", "code16": None, "size_width": 1, "pack_width": 1, "fields": [{"name": "sync", "resolved_type": "bit"}]},
        {"name": "xid", "code16": 1540, "size_width": 4, "pack_width": 2, "fields": [{"name": "a-b", "resolved_type": "dtx.id"}]},
    ],
    "error_codes": {"not-found": 404},
    "close_codes": {"normal": 200},
    "detach_codes": {"normal": 0},
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A place with these specifications, and the folders that the tables go to."""
    for name, text in (("small.json", SPECIFICATION), ("amqp-1-0.json", SPECIFICATION_1_0), ("amqp-0-10-errata.json", SPECIFICATION_0_10)):
        (tmp_path / "tables").mkdir(exist_ok=True)
        (tmp_path / "tables" / name).write_text(json.dumps(text))
    for folder in ("amqp_0_9", "amqp_1_0", "amqp_0_10"):
        (tmp_path / "core" / folder).mkdir(parents=True)
    monkeypatch.setattr(generate_spec, "TABLES", tmp_path / "tables")
    monkeypatch.setattr(generate_spec, "ROOT", tmp_path)
    monkeypatch.setattr(generate_spec, "DIALECTS", (("small.json", "core/amqp_0_9/small.py", "Small", (0, 9)),))
    monkeypatch.setattr(generate_spec, "DRAFTS", (("small.json", "core/amqp_0_9/draft.py", "Draft", (9, 1)),))
    monkeypatch.setattr(generate_spec, "BESIDE_THE_TABLES", {"small.json": [(0x1E000A, "access_request", "S", 1, 0, ("access_ok",))]})
    return tmp_path


def names_in(text):
    """The names that a written file has, with their values."""
    found: dict = {}
    exec(compile(text, "table", "exec"), found)
    return {name: value for name, value in found.items() if name.isupper()}


def test_methods_properties_and_replies_are_what_the_specification_says(tree):
    text = generate_spec.render("small.json", "Small", (0, 9))
    assert text.startswith(
        '"""Small: methods, properties, reply codes.\n\nGenerated by tools/generate_spec.py from specs/tables/small.json'
    )
    assert names_in(text) == {
        "HEADER": b"AMQP\0\0\x09\x01",
        "VERSION": (0, 9),
        "METHODS": (
            (0x1E000A, "access_request", "S", 1, 0, ("access_ok",)),
            (0x320007, "queue_move_it", "T", 2, 0, ("queue_a_b", "queue_c")),
            (0x320032, "queue_un_bind", "sSb", 1, 0, ("queue_un_bind_ok",)),
            (0x320033, "queue_un_bind_ok", "", 3, 0, ()),
            (0x3C0028, "basic_publish", "s", 1, 1, ()),
        ),
        "PROPERTIES": (("content_type", "S"), ("headers", "F")),
        "REPLIES": (("no-route", 312, False), ("not-found", 404, False), ("frame-error", 501, True)),
    }


def test_the_types_and_composites_of_1_0_are_what_the_specification_says(tree):
    """Of a restricted type with choices the name is kept, unless it is a boolean; defaults are values."""
    assert names_in(generate_spec.render_1_0("amqp-1-0.json")) == {
        "HEADER_AMQP": b"A\0",
        "HEADER_SASL": b"A\x03",
        "PRIMITIVES": ((0x70, "uint", "fixed", 4), (0x43, "uint", "fixed", 0)),
        "COMPOSITES": (
            (0x24, "none", ()),
            (
                0x12,
                "attach",
                (
                    ("name", "string", True, False, None),
                    ("role", "boolean", True, False, None),
                    ("mode", "mode", False, False, 2),
                    ("when", "policy", False, True, "never"),
                    ("batch", "boolean", False, False, False),
                    ("top", "uint", False, False, 4294967295),
                ),
            ),
        ),
        "CHOICES": {"mode": ("ubyte", (0, 2)), "policy": ("symbol", ("never", "in-error"))},
    }


def test_the_types_controls_commands_and_structs_of_0_10_are_what_the_specification_says(tree):
    """Names of classes go from the names of types; a struct without a code has None there."""
    assert names_in(generate_spec.render_0_10("amqp-0-10-errata.json")) == {
        "HEADER": b"AMQP\x01\x01\x00\x0a",
        "TYPES": ((2, "uint8", 1, 0), (133, "str8", 0, 1), (None, "sequence-no", 4, 0)),
        "CONTROLS": ((513, "session_attach", None, (("name", "vbin16"), ("command_fragments", "command-fragment[]"))),),
        "COMMANDS": ((2052, "queue_query", "queue-query-result", ()),),
        "STRUCTS": (("session-header", None, 1, 1, (("sync", "bit"),)), ("xid", 1540, 4, 2, (("a_b", "id"),))),
        "ERRORS": {"not-found": 404},
        "CLOSES": {"normal": 200},
        "DETACHES": {"normal": 0},
    }


def test_an_older_version_has_later_reply_codes_and_a_table_that_may_be_missing(tree, monkeypatch):
    """0-8 has no 406 and no table behind basic.consume; its clients are told the number, and some send the table."""
    monkeypatch.setattr(generate_spec, "OLDER", ("small.json",))
    monkeypatch.setattr(generate_spec, "OPTIONAL", {("small.json", "basic_publish"): "f"})
    names = names_in(generate_spec.render("small.json", "Small", (8, 0)))
    assert ("precondition-failed", 406, False) in names["REPLIES"] and ("unexpected-frame", 505, True) in names["REPLIES"]
    assert (0x3C0028, "basic_publish", "f", 1, 1, ()) in names["METHODS"]


def test_the_methods_contents_and_codes_of_a_draft_are_what_the_specification_says(tree):
    names = names_in(generate_spec.render_draft("small.json", "Draft", (9, 1)))
    assert names["HEADER"] == b"AMQP\x00\x00\x09\x01" and names["VERSION"] == (9, 1)
    assert [row[:2] for row in names["METHODS"]] == [
        (0x320032, "queue_un_bind"),
        (0x320033, "queue_un_bind_ok"),
        (0x3C0028, "basic_publish"),
    ]
    assert names["CONTENTS"] == {60: ("basic", (("content_type", "S"), ("headers", "F")))}
    assert names["CODES"] == {"not-found": 404, "frame-error": 501}


def test_what_is_written_is_current_and_anything_else_is_told(tree, capsys):
    assert generate_spec.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote core/amqp_0_9/small.py",
        "wrote core/amqp_0_9/draft.py",
        "wrote core/amqp_1_0/spec_1_0.py",
        "wrote core/amqp_0_10/spec_0_10.py",
    ]
    assert generate_spec.main(["--check"]) == 0 and capsys.readouterr().out == ""
    path = tree / "core" / "amqp_0_9" / "small.py"
    path.write_text(path.read_text() + "#")
    assert generate_spec.main(["--check"]) == 1 and "core/amqp_0_9/small.py is not what small.json gives" in capsys.readouterr().out
    path.unlink()
    assert generate_spec.main(["--check"]) == 1 and not path.exists()


def test_without_the_specifications_the_tables_are_taken_as_they_are(tree, monkeypatch, capsys):
    monkeypatch.setattr(generate_spec, "TABLES", tree / "nowhere")
    assert generate_spec.main(["--check"]) == 0 and generate_spec.main([]) == 1
    assert capsys.readouterr().out.count("is not here; the tables in the tree are taken as they are") == 2
