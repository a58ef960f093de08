"""Log-ins that keep failing: counted for a user at an address, an address, and a user (0-9-1 section 4.10; core/SPEC.md, "Access")."""

from test_sasl import Caller, names, new_broker, plain

from leveret.core.access.login_failures import Failures, network_of
from leveret.core.limits import BOARD, Limits

SECONDS = 1700000000
HERE = "10.0.0.7"
THERE = "10.0.0.8"


def guarded(**overrides):
    """A broker that refuses a user at an address after 2 failures, and an address after 6; its rows of failures are many."""
    values = {
        "login_failure_max": 6,
        "login_user_failure_max": 2,
        "login_refusal_ms": 5000,
        "login_address_max": 64,
        "login_timeout_ms": 4000,
    }
    values.update(overrides)
    return new_broker(**values)


def fail(broker, address, count, user="u", **given):
    """Wrong passwords of a user."""
    for _ in range(count):
        caller = Caller(broker, address=address, **given)
        assert caller.start("PLAIN", plain(user, "x")) == []
        caller.later(broker.limits.login_pause_ms)
        caller.connection.finish()


def gets_in(broker, address, user="u"):
    """True when the right password lets a user in at once; "late": after half of login_timeout_ms. Gone again either way."""
    caller = Caller(broker, address=address)
    if caller.connection.closed:
        return False
    found = names(caller.start("PLAIN", plain(user, user + "-pw")))
    if not found:
        found = names(caller.later(broker.limits.login_pause_ms))
    if not found:
        assert caller.later(broker.limits.login_timeout_ms // 2 - broker.limits.login_pause_ms - 1) == []
        found = ["late"] + names(caller.later(1))
    caller.connection.finish()
    return {"connection_tune": True, "late": "late", "connection_close": False}[found[0]]


def test_failures_are_forgotten_when_they_are_as_old_as_login_refusal_ms():
    """Each by its own last failure; the rows are looked through at most every 100 ms."""
    broker = guarded()
    fail(broker, HERE, 2)
    failures = broker.failures
    last = failures.addresses[HERE][1]
    fail(broker, THERE, 1)
    later = failures.addresses[THERE][1]
    assert later > last
    failures.tick(last + 4999)
    assert sorted(failures.addresses) == [HERE, THERE]
    failures.tick(last + 5000)
    assert sorted(failures.addresses) == [HERE, THERE], "1 ms after the last look"
    failures.swept -= 100
    failures.tick(last + 5000)
    assert list(failures.addresses) == [THERE] and list(failures.users) == ["u"]
    assert [key[0] for key in failures.at_address] == [THERE]
    failures.tick(max(later + 5000, last + 5100))
    assert not failures.addresses and not failures.users and not failures.at_address


def test_one_good_password_gives_no_guesses_at_another_users():
    """What a user failed is forgotten by its own log-in only: an attacker with an account was never refused between its own log-ins."""
    broker = guarded(login_refusal_ms=100000)
    looked_at = 0
    for _ in range(20):
        before = len(broker.lines)
        fail(broker, HERE, 1, "r")
        looked_at += [line.endswith("the password is wrong") for line in broker.lines[before:]].count(True)
        assert gets_in(broker, HERE, "u")
        broker.tick(broker.now + 1, SECONDS)
    assert looked_at == broker.limits.login_user_failure_max
    assert not gets_in(broker, HERE, "r"), "the right one is not looked at either"


def test_a_good_log_in_takes_only_its_own_failures_off_its_address():
    """An attacker with an account that fails as itself, and then gets in, has not cleared what it failed as others."""
    broker = guarded(login_refusal_ms=100000)
    for each in range(4):
        fail(broker, HERE, 1, "r%d" % each)
    fail(broker, HERE, 1, "u")
    assert gets_in(broker, HERE, "u") is True and not broker.failures.refuses_user(HERE, "t")
    fail(broker, HERE, 2, "s")
    assert broker.failures.refuses_user(HERE, "t")


def test_a_user_is_refused_at_the_address_where_it_failed_and_nowhere_else():
    """Who does not share a user's address cannot lock it out."""
    broker = guarded()
    fail(broker, HERE, 2, "r")
    assert broker.lines[-1] == "2 log-ins as 'r' from 10.0.0.7 have failed: they are refused for 5 s"
    assert not gets_in(broker, HERE, "r")
    assert "its password was not looked at" in broker.lines[-1]
    assert gets_in(broker, THERE, "r") is True and gets_in(broker, HERE, "u") is True
    broker.tick(broker.now + 5000, SECONDS)
    assert gets_in(broker, HERE, "r") is True


def test_a_client_with_a_wrong_password_that_tries_for_ever_does_not_take_its_address_with_it():
    """What is not looked at does not count: behind one address others come and go."""
    broker = guarded()
    for _ in range(30):
        fail(broker, HERE, 1, "r")
    assert not Caller(broker, address=HERE).connection.closed and broker.counters["addresses_refused"] == 0
    assert gets_in(broker, HERE, "u") is True


def test_an_address_that_keeps_failing_is_refused_for_a_while_and_the_others_are_not():
    broker = guarded()
    for user in ("a", "b", "c"):
        fail(broker, HERE, 2, user)
    assert broker.lines[-1] == "6 log-ins from 10.0.0.7 have failed: it is refused for 5 s"
    assert Caller(broker, address=HERE).connection.closed
    assert broker.counters["addresses_refused"] == 1 and broker.counters["connections_refused"] == 0
    assert gets_in(broker, THERE) is True and gets_in(broker, "") is True
    broker.tick(broker.now + 5000, SECONDS)
    assert gets_in(broker, HERE) is True


def test_who_has_come_from_a_refused_address_before_still_comes_from_there():
    """An attacker behind the same address does not keep its users out, and gets no more guesses at anybody."""
    broker = guarded()
    assert gets_in(broker, HERE, "u")
    for user in ("a", "b", "c"):
        fail(broker, HERE, 2, user)
    assert gets_in(broker, HERE, "u") is True
    assert not gets_in(broker, HERE, "r")
    assert "its password was not looked at" in broker.lines[-1]


def test_a_user_that_fails_from_many_addresses_is_answered_late_where_it_has_not_come_from():
    """Right or wrong, so that the time tells nothing; at an address of its own nothing changes."""
    broker = guarded(connection_count_max=16)
    assert gets_in(broker, HERE, "u") is True
    fail(broker, "10.0.1.1", 2)
    fail(broker, "10.0.1.2", 2)
    fail(broker, "10.0.1.3", 2)
    assert broker.lines[-2] == "6 log-ins as 'u' have failed: from addresses that it has not come from they are answered after 2000 ms"
    assert gets_in(broker, HERE, "u") is True
    assert gets_in(broker, THERE, "u") == "late"
    assert gets_in(broker, THERE, "u") is True, "now it has come from there"
    wrong = Caller(broker, address="10.0.1.4")
    assert wrong.start("PLAIN", plain("u", "x")) == []
    assert wrong.later(1999) == []
    assert names(wrong.later(1)) == ["connection_close"]
    assert gets_in(broker, THERE, "r") is True


def test_a_user_removed_while_its_late_answer_waits_does_not_get_in():
    from leveret.core.access import users

    broker = guarded()
    for last in range(3):
        fail(broker, "10.0.1.%d" % last, 2)
    caller = Caller(broker, address=THERE)
    assert caller.start("PLAIN", plain("u", "u-pw")) == []
    users.remove(broker, "u")
    assert "connection_tune" not in names(caller.later(2000)) and caller.connection.user is None


def test_a_log_in_that_succeeds_forgets_what_its_user_failed_there():
    broker = guarded(login_user_failure_max=3)
    for _ in range(5):
        fail(broker, HERE, 2)
        assert gets_in(broker, HERE) is True
    failures = broker.failures
    assert not failures.at_address and not failures.addresses and not failures.users


def test_an_address_that_does_not_count_is_never_refused():
    """Serial lines, and interpreters that do not tell a peer's address."""
    broker = guarded(login_failure_max=1, login_user_failure_max=1)
    fail(broker, "", 5)
    assert gets_in(broker, "") is True and not broker.failures.users


def test_the_tables_are_bounded_and_forget_the_oldest():
    broker = guarded(login_address_max=4, login_refusal_ms=100000, login_failure_max=50)
    for number in range(10):
        fail(broker, "10.0.0.%d" % number, 1, "user %d" % number)
        assert gets_in(broker, "10.0.1.%d" % number) is True
        for rows in (broker.failures.at_address, broker.failures.addresses, broker.failures.users, broker.failures.good):
            assert len(rows) <= 4
    assert sorted(broker.failures.addresses) == ["10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9"]
    assert sorted(broker.failures.good) == [("10.0.1.%d" % number, "u") for number in (6, 7, 8, 9)]


def test_a_name_of_any_length_or_octets_takes_a_bounded_row():
    broker = guarded(receive_buffer_size=1024)
    fail(broker, HERE, 1, "x" * 300)
    failures = broker.failures
    assert [len(name) for name in failures.users] == [32]
    failures.failed(HERE, b"\xff" * 300, broker.now)
    assert not failures.refuses_user(HERE, b"\xff" * 300)
    failures.failed(HERE, b"\xff" * 300, broker.now)
    assert failures.refuses_user(HERE, b"\xff" * 300)


def test_times_that_wrap_do_not_keep_an_address_refused():
    broker = guarded(login_failure_max=1)
    broker.now = 0x3FFFFFFF - 1000
    broker.failures.swept = broker.now
    fail(broker, HERE, 1)
    for _ in range(7):
        assert Caller(broker, address=HERE).connection.closed or broker.failures.addresses == {}
        broker.tick((broker.now + 1000) & 0x3FFFFFFF, SECONDS)
    assert not Caller(broker, address=HERE).connection.closed


def test_the_addresses_of_one_ipv6_site_count_as_one():
    """RFC 4291 section 2.5.1: who has a /64 has all its addresses; section 2.5.5.2: mapped ones are IPv4."""
    assert network_of("2001:db8:1:2:3:4:5:6") == network_of("2001:db8:1:2::9") == network_of("2001:db8:1:2:ffff::") == "2001:db8:1:2"
    assert network_of("2001:db8::1") == network_of("2001:db8:0:0:9::") == "2001:db8:0:0"
    assert network_of("::1") == "0:0:0:0" and network_of("fe80::1%eth0") == "fe80:0:0:0"
    assert network_of("::ffff:10.0.0.7") == network_of("10.0.0.7") == "10.0.0.7"
    failures = Failures(Limits(**dict(BOARD, login_failure_max=3, login_user_failure_max=2)))
    for last in range(3):
        failures.failed("2001:db8:1:2::%d" % last, "u%d" % last, 0)
    assert failures.refuses("2001:db8:1:2::77") and not failures.refuses("2001:db8:1:3::77")
