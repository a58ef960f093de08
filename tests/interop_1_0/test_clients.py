"""Each scenario of each client against `leveret serve`; LEVERET_TEST_PEER=artemis (broker-j, rabbitmq) has a peer judged by the same.

The programs of all clients run side by side, once; a test looks up what its scenario came to. What does not pass has its reason in
expected.toml, and fails here as soon as it passes.
"""

import os

import peers
import programs
import pytest

KIND = os.environ.get("LEVERET_TEST_PEER", "leveret")


def _cases():
    known = programs.expected(KIND)
    for client, program in programs.PROGRAMS.items():
        if program.only and KIND not in program.only:
            continue
        for scenario in program.scenarios():
            why = known.pop(f"{client}.{scenario}", None)
            marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
            yield pytest.param(client, scenario, marks=marks, id=f"{client}-{scenario}")
    assert not known, f"expected.toml has scenarios that are not there: {', '.join(known)}"


@pytest.fixture(scope="module")
def outcomes(request):
    """{client: {scenario: "" or why it failed}} of the clients that are asked for and can run."""
    clients = {item.callspec.params["client"] for item in request.session.items if item.name.startswith("test_client[")}
    clients = sorted(client for client in clients if not programs.missing(client))
    for client in clients:
        programs.PROGRAMS[client].command()  # what it needs is brought before the clock runs
    broker = request.getfixturevalue(KIND.replace("-", "_"))
    if KIND == "leveret":
        programs.declare_queues(broker, clients)
    running = {client: programs.start(client, broker) for client in clients}
    return {client: programs.outcomes(client, process) for client, process in running.items()}


@pytest.mark.parametrize("client, scenario", _cases())
def test_client(outcomes, client, scenario):
    missing = programs.missing(client)
    if missing:
        pytest.skip(missing.sentence())
    why = outcomes[client][scenario]
    assert not why, why


def test_the_broker_is_whole(outcomes, request):
    """It is there, and nothing that the clients did made it write a traceback."""
    broker = request.getfixturevalue(KIND.replace("-", "_"))
    assert broker.alive(), broker.error_text()
    if KIND == "leveret":
        assert "Traceback" not in broker.error_text(), broker.error_text()


def test_every_peer_has_a_table():
    """What is expected of a kind of broker that is not there would be looked at by nobody."""
    assert set(programs.all_expected()) <= set(peers.PEERS)
