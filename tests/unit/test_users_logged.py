"""Users that a running broker was given come back from its log; those of the configuration have the last word."""

import json

from memory_store import MemoryStore, durable_broker
from peer import new_broker

from leveret.core.access import passwords, topic_permissions, users
from leveret.core.access.permissions import EVERYTHING, Access, User
from leveret.core.errors import PRECONDITION_FAILED, ProtocolError
from leveret.core.management import rabbitmq_definitions
from leveret.core.recovery import opening

HASH = passwords.hashed("secret of the sensor", b"0123456789abcdef", 2).text()


def import_user(broker, name="sensor", tags="monitoring", given=HASH, permissions=("", "^t$", "")):
    """As definitions bring it."""
    item = {"name": name, "tags": tags, "hashing_algorithm": passwords.Pbkdf2.algorithm, "password_hash": passwords.base64(given.encode())}
    assert rabbitmq_definitions.load(broker, "users", item) == (True, "")
    if permissions is not None:
        item = dict(zip(("user", "configure", "write", "read"), (name,) + tuple(permissions)))
        assert rabbitmq_definitions.load(broker, "permissions", item) == (True, "")


def restarted(broker, **configured):
    """What comes back after a power cut; `configured`: users of the file."""
    broker.journal.run()
    again = new_broker()
    if configured:
        again.access = Access([configured[name] for name in configured])
        for user in again.access.users.values():
            user.configured = True
    opening.make_durable(again, broker.journal.log.store.cut(), "each", 100, 65536, 4096, 1 << 20)
    return again


def facts(broker, name="sensor"):
    """What is known of a user."""
    user = broker.access.users.get(name)
    return None if user is None else (user.stored and user.stored.text(), user.tags, user.permissions and tuple(user.permissions))


def test_an_imported_user_survives_a_restart_and_no_password_is_in_the_log():
    """Hash, tags and permissions; twice, and after all definitions were written anew."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker)
    first = restarted(broker)
    assert facts(first) == facts(broker) == (HASH, ("monitoring",), ("", "^t$", ""))
    first.journal.snapshot()
    second = restarted(first)
    assert facts(second) == facts(broker)
    for octets in second.journal.log.store.segments.values():
        assert b"secret of the sensor" not in octets


def test_what_changes_later_is_what_comes_back():
    """Permissions, tags, no password at all."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker, permissions=None)
    assert facts(restarted(broker))[2] is None
    import_user(broker, tags="", permissions=(".*", ".*", ".*"))
    rabbitmq_definitions.load(broker, "users", {"name": "silent", "password_hash": "", "tags": []})
    again = restarted(broker)
    assert facts(again) == (HASH, (), (".*", ".*", ".*")) and facts(again, "silent") == (None, (), None)


def test_importing_the_same_again_writes_nothing():
    """As every start with --definitions does."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker)
    broker.journal.run()
    before = broker.journal.last()
    import_user(broker)
    assert broker.journal.last() == before


def test_a_removed_user_stays_removed():
    """Also the guest of a broker without users; and it comes back when it is made again."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker)
    users.remove(broker, "sensor")
    users.remove(broker, "guest")
    again = restarted(broker)
    assert facts(again) is None and facts(again, "guest") is None
    again.journal.snapshot()
    third = restarted(again)
    assert facts(third, "guest") is None
    import_user(third, "guest", "administrator", HASH, EVERYTHING)
    assert facts(restarted(third), "guest") == (HASH, ("administrator",), EVERYTHING)


def test_the_configuration_has_the_last_word():
    """What the log has under the name of a configured user is passed over; such a user is not removed."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker)
    import_user(broker, "other")
    again = restarted(broker, sensor=User("sensor", None, ("administrator",), EVERYTHING))
    assert facts(again) == (None, ("administrator",), EVERYTHING) and facts(again, "other") is not None
    try:
        users.remove(again, "sensor")
    except ProtocolError as error:
        assert error.condition == PRECONDITION_FAILED and "configuration" in error.text
    else:
        raise AssertionError("removed")


def test_definitions_that_change_a_configured_user_are_left_out_with_a_sentence():
    """The next start would undo them in silence. What says the same as the file is loaded, so an export comes in again."""
    broker, _ = durable_broker(MemoryStore())
    sensor = User("sensor", passwords.stored(HASH), ("monitoring",), EVERYTHING)
    sensor.configured = True
    broker.access.put(sensor)
    host = broker.virtual_host
    topic_permissions.give(broker, sensor, {"amq.topic": ("^a", "")})
    same = {
        "users": rabbitmq_definitions.a_user(sensor),
        "permissions": rabbitmq_definitions.a_permission(host, sensor),
        "topic_permissions": rabbitmq_definitions.topic_rows(host, sensor)[0],
    }
    changes = (
        ("users", {"tags": ["management"]}),
        ("users", {"password_hash": ""}),
        ("users", {"limits": {"max-channels": 1}}),
        ("permissions", {"write": ""}),
        ("topic_permissions", {"read": "b"}),
        ("topic_permissions", {"exchange": "another"}),
    )
    for section in same:
        assert rabbitmq_definitions.load(broker, section, same[section]) == (True, "")
    for section, change in changes:
        loaded, told = rabbitmq_definitions.load(broker, section, dict(same[section], **change))
        assert not loaded and "'sensor'" in told and "configuration file has this user" in told and "reload" in told, told
    assert facts(broker) == (HASH, ("monitoring",), EVERYTHING) and sensor.limits is None
    assert sensor.topics.rows == {"amq.topic": ("^a", "")}


def test_a_permission_that_this_interpreter_does_not_know_does_not_keep_the_broker_from_starting():
    """A log from another interpreter: the user is there without permissions, and that is said."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker)
    broker.journal.define(dict(users.definition_of(broker.access.users["sensor"]), permissions=["(", "", ""]))
    again = restarted(broker)
    assert facts(again) == (HASH, ("monitoring",), None)


def test_the_definitions_that_are_written_can_be_read_as_json():
    """The log's own records."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker)
    assert json.loads(json.dumps(list(users.definitions(broker))))[0]["name"] == "sensor"


def test_what_the_predeclared_guest_may_is_what_comes_back():
    """A guest with fewer rights does not have all of them again after a start."""
    broker, _ = durable_broker(MemoryStore())
    guest = broker.access.users["guest"]
    assert guest.predeclared
    users.permit(broker, guest, ("", "^t$", ""))
    again = restarted(broker)
    assert facts(again, "guest")[1:] == (("administrator",), ("", "^t$", ""))
    assert facts(again, "guest")[0] == guest.stored.text()
    assert [row["name"] for row in exported(again)] == ["guest"]
    users.permit(broker, guest, None)
    assert restarted(broker).access.users["guest"].permissions is None


def test_a_guest_that_was_changed_and_removed_stays_away():
    """A start does not make the predeclared guest, with the password that everybody knows, in the place of one that was removed."""
    broker, _ = durable_broker(MemoryStore())
    import_user(broker, "guest")
    assert facts(restarted(broker), "guest")[0] == HASH
    users.remove(broker, "guest")
    again = restarted(broker)
    assert facts(again, "guest") is None
    again.journal.snapshot()
    assert facts(restarted(again), "guest") is None
    import_user(again, "guest")
    assert facts(restarted(again), "guest")[0] == HASH


def exported(broker):
    """The users of an export."""
    (section,) = [each for each in rabbitmq_definitions.sections(broker) if each[0] == "users"]
    return [section[2](user) for _, user in section[1]]
