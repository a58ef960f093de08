"""Every route of the API (ports/http/routes.py): who may call it, and what it says of a virtual host that there is not."""

import re

from api import Api

from leveret.ports.http.routes import ROUTES

# Names in paths that every broker has: what is asked about is the virtual host alone, or the user.
NAMES = {"name": "amq.direct", "source": "amq.direct", "user": "guest", "kind": "q", "destination": "none", "key": "~", "node": "none"}
# What this broker does not have in its own virtual host either, and says so.
NOT_SERVED = (b'"reason":"this broker ', b'"reason":"vhost_or_user_not_found"')  # the second as RabbitMQ has it
NEEDED = {"management": "Not management user", "monitoring": "Not monitor user", "policymaker": "User not authorised to access object"}
# The tags of the users of conftest.py, and which tags each of them stands for (RabbitMQ's management guide, "Permissions").
RANKS = {
    "guest": ("management", "policymaker", "monitoring", "administrator"),
    "watcher": ("management", "monitoring"),
    "maker": ("management", "policymaker"),
    "viewer": ("management",),
    "nobody": (),
}


def path_of(pattern, host="%2F"):
    """A path for a pattern, in a virtual host."""
    return re.sub(r"\{(\w+)\}", lambda name: host if name[1] == "vhost" else NAMES.get(name[1], "1"), pattern)


def test_a_virtual_host_that_there_is_not_is_404_everywhere(served, api):
    """And nothing changes: what a call would make in the only virtual host is not there."""
    before = [api.get(path) for path in ("/queues", "/exchanges", "/bindings", "/permissions", "/policies", "/vhosts")]
    wrong = []
    for method, pattern, _, _ in ROUTES:
        if "{vhost}" not in pattern:
            continue
        body = {} if method in ("PUT", "POST") else None
        status, _, answer = api.call(method, path_of(pattern, "nowhere"), body)
        if status != 404 and not (status == 400 and any(words in answer for words in NOT_SERVED)):
            wrong.append((method, pattern, status, answer))
    assert wrong == []
    assert [api.get(path) for path in ("/queues", "/exchanges", "/bindings", "/permissions", "/policies", "/vhosts")] == before


def test_who_may_call_what(served):
    """A user without the tag is told so (401, as in RabbitMQ), one with it is not; GET only, since it changes nothing."""
    for user, tags in RANKS.items():
        api = Api(served.http_port, user)
        for method, pattern, tag, _ in ROUTES:
            if method == "GET" and tag is not None:
                status, _, body = api.call("GET", path_of(pattern))
                words = NEEDED.get(tag if tags else "management", "Not administrator user").encode()  # without a tag, none
                assert (status == 401 and words in body) == (tag not in tags) and status != 500, (user, pattern, status, body)


def test_a_method_that_a_path_does_not_have_is_405_and_names_those_it_has(api):
    """RFC 9110 section 15.5.6."""
    methods = {}
    for method, pattern, _, _ in ROUTES:
        methods.setdefault(path_of(pattern), set()).add(method)
    for path, has in sorted(methods.items()):
        status, headers, _ = api.call("PATCH", path)
        allowed = {each.strip() for each in headers.get("allow", headers.get("Allow", "")).split(",")}
        assert status == 405 and has <= allowed, (path, status, headers)
