"""Scenarios with rabbitmq-c's command-line tools (Debian: amqp-tools). Each check gets the broker's port on 127.0.0.1.

The texts looked for are RabbitMQ 3.10's: people's shell scripts see them.
"""

import os
import subprocess
import time

import amqp

WAIT_S_MAX = 20
NO_MESSAGE = 2  # exit status of amqp-get


def tool(port, name, *arguments, given=b"", user=("guest", "guest"), vhost="/"):
    """Run one tool to its end: (exit status, standard output, standard error)."""
    command = [name, "--server=127.0.0.1", f"--port={port}", f"--vhost={vhost}", f"--username={user[0]}", f"--password={user[1]}"]
    done = subprocess.run(command + list(arguments), input=given, capture_output=True, timeout=WAIT_S_MAX)
    return done.returncode, done.stdout, done.stderr.decode().strip()


def declared(port, name, *arguments):
    """A fresh queue of this name."""
    tool(port, "amqp-delete-queue", "-q", name)
    assert tool(port, "amqp-declare-queue", "-q", name, *arguments) == (0, name.encode() + b"\n", "")
    return name


def refused(done, text):
    """The tool must have failed, with this text in what it says."""
    assert done[0] == 1 and done[1] == b"" and text in done[2], done


def check_get_from_an_empty_queue(port):
    assert tool(port, "amqp-get", "-q", declared(port, "tools.empty")) == (NO_MESSAGE, b"", "")


def check_publish_and_get(port):
    queue = declared(port, "tools.get")
    assert tool(port, "amqp-publish", "-r", queue, "-b", "hello") == (0, b"", "")
    assert tool(port, "amqp-get", "-q", queue) == (0, b"hello", "")
    assert tool(port, "amqp-get", "-q", queue)[0] == NO_MESSAGE


def check_three_megabytes(port):
    queue = declared(port, "tools.big")
    body = os.urandom(3_000_000)
    assert tool(port, "amqp-publish", "-r", queue, given=body) == (0, b"", "")
    assert tool(port, "amqp-get", "-q", queue) == (0, body, "")


def check_an_empty_message(port):
    queue = declared(port, "tools.nothing")
    assert tool(port, "amqp-publish", "-r", queue, given=b"") == (0, b"", "")
    assert tool(port, "amqp-get", "-q", queue) == (0, b"", "")


def check_a_message_for_each_line(port):
    queue = declared(port, "tools.lines")
    assert tool(port, "amqp-publish", "-l", "-r", queue, given=b"one\ntwo\nthree\n") == (0, b"", "")
    assert [tool(port, "amqp-get", "-q", queue)[1] for _ in range(3)] == [b"one\n", b"two\n", b"three\n"]


def check_properties_and_headers(port):
    queue = declared(port, "tools.properties")
    assert tool(
        port,
        "amqp-publish",
        "-r",
        queue,
        "-b",
        "{}",
        "-C",
        "application/json",
        "-E",
        "utf-8",
        "-t",
        "answers",
        "-p",
        "-H",
        "colour: green",
        "-H",
        "size:7",
    ) == (0, b"", "")
    with amqp.Connection(f"127.0.0.1:{port}") as connection:
        message = connection.channel().basic_get(queue, no_ack=True)
    assert message.properties == {
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "reply_to": "answers",
        "delivery_mode": 2,
        "application_headers": {"colour": "green", "size": "7"},
    }, message.properties
    assert message.delivery_info["routing_key"] == queue and message.delivery_info["exchange"] == ""


def check_publish_to_a_missing_exchange(port):
    refused(
        tool(port, "amqp-publish", "-e", "tools.none", "-r", "key", "-b", "lost"),
        "server channel error 404, message: NOT_FOUND - no exchange 'tools.none' in vhost '/'",
    )


def check_get_from_a_missing_queue(port):
    refused(
        tool(port, "amqp-get", "-q", "tools.none"),
        "basic.get: server channel error 404, message: NOT_FOUND - no queue 'tools.none' in vhost '/'",
    )


def check_consume_some_of_a_queue(port):
    queue = declared(port, "tools.some")
    tool(port, "amqp-publish", "-l", "-r", queue, given=b"1\n2\n3\n4\n")
    assert tool(port, "amqp-consume", "-q", queue, "-c", "3", "-p", "1", "cat") == (0, b"1\n2\n3\n", "")
    assert tool(port, "amqp-get", "-q", queue) == (0, b"4\n", "")


def check_consume_without_acknowledgement(port):
    queue = declared(port, "tools.noack")
    tool(port, "amqp-publish", "-l", "-r", queue, given=b"1\n2\n")
    assert tool(port, "amqp-consume", "-q", queue, "-A", "-c", "2", "cat") == (0, b"1\n2\n", "")
    assert tool(port, "amqp-get", "-q", queue)[0] == NO_MESSAGE


def check_a_message_whose_command_failed_is_delivered_again(port):
    queue = declared(port, "tools.again")
    tool(port, "amqp-publish", "-r", queue, "-b", "try")
    attempts = tool(port, "amqp-consume", "-q", queue, "-c", "1", "false")
    assert attempts[0] == 0, attempts
    assert tool(port, "amqp-get", "-q", queue) == (0, b"try", "")


def check_topic_consumer(port):
    command = ["amqp-consume", "--server=127.0.0.1", f"--port={port}", "-e", "amq.topic", "-r", "tools.*.hot", "-c", "2", "cat"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consumer:
        try:
            limit = time.monotonic() + WAIT_S_MAX
            while consumer.poll() is None and time.monotonic() < limit:  # until it is bound, what is published goes nowhere
                for key, body in (("tools.hot", "wrong"), ("tools.a.hot", "right"), ("tools.a.cold", "wrong")):
                    tool(port, "amqp-publish", "-e", "amq.topic", "-r", key, "-b", body)
            assert consumer.wait(1) == 0 and consumer.stdout.read() == b"rightright"
            assert b"Server provided queue name: amq.gen-" in consumer.stderr.read()
        finally:
            consumer.kill()


def check_declare_a_queue_without_a_name(port):
    status, name, _ = tool(port, "amqp-declare-queue", "-q", "")
    assert status == 0 and name.startswith(b"amq.gen-")
    assert tool(port, "amqp-delete-queue", "-q", name.decode().strip()) == (0, b"0\n", "")


def check_declare_with_another_durability(port):
    refused(
        tool(port, "amqp-declare-queue", "-d", "-q", declared(port, "tools.durable")),
        "server channel error 406, message: PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'tools.durable' in vhost '/': "
        "received 'true' but current is 'false'",
    )


def check_delete_tells_how_many_messages_went(port):
    queue = declared(port, "tools.delete")
    tool(port, "amqp-publish", "-l", "-r", queue, given=b"1\n2\n")
    refused(
        tool(port, "amqp-delete-queue", "-e", "-q", queue),
        "server channel error 406, message: PRECONDITION_FAILED - queue 'tools.delete' in vhost '/' not empty",
    )
    assert tool(port, "amqp-delete-queue", "-q", queue) == (0, b"2\n", "")
    assert tool(port, "amqp-delete-queue", "-q", queue) == (0, b"0\n", "")


def check_a_wrong_password(port):
    refused(
        tool(port, "amqp-get", "-q", "any", user=("guest", "wrong")),
        "logging in to AMQP server: server connection error 403, message: ACCESS_REFUSED - Login was refused using authentication "
        "mechanism PLAIN. For details see the broker logfile.",
    )


def check_a_missing_vhost(port):
    refused(
        tool(port, "amqp-get", "-q", "any", vhost="tools"),
        "logging in to AMQP server: server connection error 530, message: NOT_ALLOWED - vhost tools not found",
    )
