"""The configuration file and the listeners' URLs: what is right is read, and each mistake is one sentence that names it."""

import pytest

from leveret.tools import address, config, serve
from leveret.tools.usage import UsageError


def write(directory, text):
    path = directory / "leveret.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_listeners_and_limits_are_read(tmp_path):
    urls, limits = config.load(write(tmp_path, 'listen = ["amqp://[::1]:0"]\n[limits]\nqueue_count_max = 20\nqueue_share_max = 10\n'))
    assert urls == ["amqp://[::1]:0"]
    assert (limits.queue_count_max, limits.queue_share_max) == (20, 10)


def test_an_empty_file_means_the_defaults(tmp_path):
    urls, limits = config.load(write(tmp_path, ""))
    assert urls == [] and limits.connection_count_max == 256


@pytest.mark.parametrize(
    "text, words",
    [
        ("colour = 1", ("colour", "listen", "limits")),
        ("lisen = []", ("'lisen' (is it listen?)",)),
        ("[limits]\nqueue_count = 5", ("queue_count", "(is it queue_count_max?)")),
        ("[limits]\nqueue_count_max = 0", ("queue_count_max", "from 1 to 65535", "0")),
        ("[limits]\nqueue_count_max = 70000", ("queue_count_max", "from 1 to 65535", "70000")),
        (
            "[limits]\nreceive_buffer_size = 4095\nproperties_size_max = 1024",  # MIN-MAX-FRAME-SIZE of 0-10
            ("receive_buffer_size is 4095", "AMQP 0-10", "4096"),
        ),
        ("[limits]\nqueue_count_max = '5'", ("queue_count_max", "whole number", "'5'")),
        ("[limits]\nqueue_count_max = true", ("queue_count_max", "whole number")),
        ("[limits]\nqueue_count_max = 2.5", ("queue_count_max", "whole number")),
        ("[limits]\nqueue_share_max = 2000", ("queue_share_max must not be above queue_count_max",)),
        ("limits = 5", ("limits", "table")),
        ("listen = 'amqp://127.0.0.1'", ("listen", "list")),
        ("listen = [5672]", ("listen", "list")),
        ("listen = ['http://x']", ("listen", "http://x", "amqp://HOST:PORT")),
        ("listen = [", ("not TOML",)),
        (b"\xff\xfe", ("not TOML",)),
    ],
)
def test_a_mistake_is_one_sentence_that_names_file_and_key(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        config.load(path)
    told = str(caught.value)
    assert path in told and "\n" not in told
    for word in words:
        assert word in told, told


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        config.load(str(tmp_path / "absent.toml"))


@pytest.mark.parametrize(
    "url, users, told",
    [
        ("amqp://0.0.0.0:0", ["guest"], True),
        ("amqps://[::]:0?cert=c&key=k", ["guest"], True),
        ("amqps://192.0.2.1:0?cert=c&key=k", ["guest", "sensors"], False),
        ("amqp://127.0.0.1:0", ["guest"], False),
        ("amqp://[::1]:0", ["guest"], False),
        ("serial:///dev/ttyUSB0", ["guest"], False),
    ],
)
def test_an_open_listener_with_guest_alone_is_told(url, users, told):
    assert serve.only_guest(users, [address.parse(url)]) is told


@pytest.mark.parametrize(
    "url, host, port, again",
    [
        ("amqp://127.0.0.1:5673", "127.0.0.1", 5673, "amqp://127.0.0.1:5673"),
        ("amqp://localhost", "localhost", 5672, "amqp://localhost:5672"),
        ("amqp://[::1]:0/", "::1", 0, "amqp://[::1]:0"),
    ],
)
def test_a_tcp_address(url, host, port, again):
    read = address.parse(url)
    assert (read.host, read.port, read.url()) == (host, port, again)


@pytest.mark.parametrize(
    "url, kind, again",
    [
        ("ws://127.0.0.1:15670", address.WebSocketAddress, "ws://127.0.0.1:15670"),
        ("ws://[::1]", address.WebSocketAddress, "ws://[::1]:80"),
        ("wss://h?cert=c&key=k", address.TlsAddress, "wss://h:443"),
        ("amqp://h?cert=c&key=k", address.TlsAddress, "amqp://h:5672"),
        ("amqps://h?cert=c&key=k&ca=a&verify=peer", address.TlsAddress, "amqps://h:5671"),
    ],
)
def test_addresses_of_other_layers(url, kind, again):
    read = address.parse(url)
    assert type(read) is kind and read.url() == again
    for wrong in (
        url + "#x",
        url.replace("://", "://user@"),
        "ws://",
        "ws://h/path",
        "ws://h?cert=c",
        "wss://h",
        "wss://h?cert=c",
        "amqp://h?key=k",
    ):
        with pytest.raises(UsageError):
            address.parse(wrong)


def test_an_address_of_a_draft():
    """`?version=`: what an ambiguous header means there."""
    for version in ("0.9a5", "0.9r1"):
        read = address.parse(f"amqp://127.0.0.1:0?version={version}")
        assert type(read) is address.TcpAddress and read.version == version and read.url(7) == f"amqp://127.0.0.1:7?version={version}"
    assert address.parse("amqp://h").version is None
    for wrong in (
        "amqp://h?version=",
        "amqp://h?version=0.9",
        "amqp://u@h?version=0.9a5",
        "amqps://h?version=0.9a5",
        "ws://h?version=0.9a5",
    ):
        with pytest.raises(UsageError):
            address.parse(wrong)


def test_a_serial_address():
    read = address.parse("serial:///dev/ttyUSB0?baud=9600")
    assert (read.device, read.baud, read.url()) == ("/dev/ttyUSB0", 9600, "serial:///dev/ttyUSB0?baud=9600")
    assert address.parse("serial:///dev/ttyS1").baud == 115200
    url = "serial:///dev/ttyS1?baud=115200&speed=921600&crc=16&frame=128&window=4096"
    read = address.parse(url)
    assert read.options == {"speed": 921600, "check_size": 2, "payload_size_max": 128, "window_size": 4096} and read.url() == url
    assert address.parse("serial:///dev/ttyS1?address=7").options == {"address": 7}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:5672",
        "http://127.0.0.1",
        "amqp://",
        "amqp://:5672",
        "amqp://h:port",
        "amqp://h:65536",
        "amqp://h:-1",
        "amqp://[::1",
        "amqp://guest:guest@h:1",
        "amqp://h:1/vhost",
        "amqp://h:1?x=1",
        "serial://ttyUSB0",
        "serial:///tmp/",
        "serial:///dev/ttyS0?baud=0",
        "serial:///dev/ttyS0?baud=fast",
        "serial:///dev/ttyS0?baud=",
        "serial:///dev/ttyS0?parity=even",
        "serial:///dev/ttyS0?baud=99999999",
        "serial:///dev/ttyS0?baud=\u0661",
        "serial:///dev/ttyS0?crc=17",
        "serial:///dev/ttyS0?frame=31",
        "serial:///dev/ttyS0?window=3000",
        "serial:///dev/ttyS0?window=256&frame=512",
        "serial:///dev/ttyS0?address=0",
        "serial:///dev/ttyS0?address=256",
        "serial:///dev/ttyS0?speed=0",
        "serial:///dev/ttyS0?address=1&speed=9600",
    ],
)
def test_a_wrong_address_is_refused_in_one_sentence_that_repeats_it(url):
    with pytest.raises(UsageError) as caught:
        address.parse(url)
    assert repr(url) in str(caught.value) and "\n" not in str(caught.value)


def test_the_virtual_host_has_a_name_and_aliases(tmp_path):
    assert config.virtual_host(None) == ("/", ()) == config.virtual_host(write(tmp_path, ""))
    assert config.virtual_host(write(tmp_path, 'vhost = "/production"\nvhost_aliases = ["/", "prod"]')) == ("/production", ("/", "prod"))


@pytest.mark.parametrize(
    "text, words",
    [
        ("vhost = 5", ("vhost has 5", "1 to 255 octets")),
        ("vhost = ''", ("vhost has ''",)),
        ('vhost = "a\\u0000"', ("vhost has 'a",)),
        ('vhost = "a\\nb"', ("vhost has 'a\\nb'", "control characters")),
        (f"vhost = '{'x' * 256}'", ("255 octets",)),
        ("vhost_aliases = '/'", ("vhost_aliases must be a list",)),
        ("vhost_aliases = [1]", ("vhost_aliases has 1",)),
        ("vhost = 'a'\nvhost_aliases = ['b', 'a']", ("twice",)),
        ("vhost_aliases = ['/']", ("twice",)),
    ],
)
def test_a_mistake_in_the_name_of_the_virtual_host_is_one_sentence(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        config.virtual_host(path)
    told = str(caught.value)
    assert path in told and "\n" not in told and all(word in told for word in words), told


def test_nodes_that_are_made_on_use_have_a_pattern_and_a_kind(tmp_path):
    path = write(tmp_path, "[[node]]\npattern = '^orders[.]'\n[[node]]\npattern = 'events'\nkind = 'fanout'\n")
    (orders, queue), (events, fanout) = config.made_on_use(path)
    assert (queue, fanout) == ("queue", "fanout")
    assert orders.matches("orders.1") and not orders.matches("my.orders.1") and events.matches("all events")
    assert config.made_on_use("") == () == config.made_on_use(write(tmp_path, ""))


@pytest.mark.parametrize(
    "text, word",
    [
        ("[[node]]", "a [[node]] has a pattern"),
        ("[[node]]\npattern = 5", "pattern must be a regular expression"),
        ("[[node]]\npattern = '('", "'('"),
        ("[[node]]\npattern = 'x'\nkind = 'heap'", 'kind must be "queue" or "quorum"'),
        ("[[node]]\npattern = 'x'\ntype = 'queue'", "there is no setting 'type' in [[node]]"),
        ("[node]\npattern = 'x'", "[[node]]"),
    ],
)
def test_a_mistake_in_a_node_is_one_sentence(tmp_path, text, word):
    with pytest.raises(UsageError) as caught:
        config.made_on_use(write(tmp_path, text))
    assert word in str(caught.value)


def test_places_for_http(tmp_path):
    assert config.http("") == []
    assert config.http(write(tmp_path, "http = ['127.0.0.1:0', 'https://x:1?cert=c&key=k']")) == ["127.0.0.1:0", "https://x:1?cert=c&key=k"]
    places = [address.parse_http(url) for url in ("h:1", "http://h", "http://h:1?metrics=open", "https://h?cert=c&key=k&metrics=open")]
    assert [(each.scheme, each.port, each.metrics) for each in places] == [
        ("http", 1, None),
        ("http", 15672, None),
        ("http", 1, "open"),
        ("https", 15671, "open"),
    ]
    for wrong in (
        "amqp://h:1",
        "h:x",
        "http://h:1/path",
        "http://a@h:1",
        "http://h?metrics=closed",
        "https://h:1",
        "https://h?cert=c&key=k&x=1",
    ):
        with pytest.raises(UsageError):
            config.http(write(tmp_path, f"http = ['{wrong}']"))
