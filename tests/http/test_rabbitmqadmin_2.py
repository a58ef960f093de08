"""The newer rabbitmqadmin (rabbitmqadmin-ng, https://crates.io/crates/rabbitmqadmin; written against 2.35.0), unchanged: each of its
subcommands that asks a broker. The statuses are those that RabbitMQ 3.10.8 brings about, where it knows the request; its own refusals (65)
and failed health checks (69) too.
"""

import json
import re
import subprocess

import pika
import pytest
from api import Api, Served

from leveret.tools import components

PATH = components.rabbitmqadmin_2()
pytestmark = pytest.mark.skipif(PATH is None, reason="rabbitmqadmin 2 is not there: " + components.RABBITMQADMIN_2.install)
HASH = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
DEFINITIONS = {"queues": [{"name": "imported", "durable": True, "auto_delete": False, "arguments": {}}]}

# Lines that one broker is given one behind the other: status where it is not 0, line, words of the output where they matter (behind ->)
LINES = """
show overview -> Leveret
show churn
show endpoint
show memory_breakdown_in_bytes --node NODE -> Total (RSS)
show memory_breakdown_in_percent --node NODE -> 100%
nodes list -> rabbitmq_management
list nodes
nodes memory_breakdown_in_bytes --node NODE
nodes memory_breakdown_in_percent --node NODE
auth_attempts stats --node NODE -> amqp
plugins list_all -> rabbitmq_management
plugins list_on_node --node NODE -> rabbitmq_management
declare queue --name q1 --type classic --durable true
declare queue --name q2 --type quorum
queues declare --name q3 --type stream
declare stream --name s1 --expiration 2h --max-length-bytes 1000000
streams declare --name s2 --expiration 1D --stream-max-segment-size-bytes 500000
declare exchange --name e1 --type topic --durable true
exchanges declare --name e2 --type fanout --auto-delete true
declare binding --source e1 --destination-type queue --destination q1 --routing-key a.#
bindings declare --source e1 --destination-type exchange --destination e2 --routing-key b --arguments {"x":1}
exchanges bind --source e1 --destination-type queue --destination q2 --routing-key c
publish message -e e1 -k a.b -m hello
publish message -k q1 -m more --properties {"delivery_mode":2}
publish message -k nowhere -m x
get messages -q q1 -c 1 -a ack_requeue_true -> hello
get messages -q q1 -c 2 -> more
get messages -q q1
65 get messages -q nope
list queues -> quorum
list queues --page 1 --page-size 2
queues list -> q1
queues show --name q1 -> classic
65 queues show --name nope
streams list -> s1
streams show --name s1 -> x-max-age
list exchanges -> amq.topic
exchanges list -> e1
list bindings -> a.#
bindings list -> a.#
list users -> administrator
users list
list vhosts
vhosts list
list permissions -> .*
permissions list
users permissions
users limits
list parameters
list parameters --component federation-upstream
parameters list_all
parameters list --component shovel
parameters list_in --component shovel
list policies
list operator_policies
list vhost_limits
vhost_limits list
list user_limits
list feature_flags -> stream_queue
feature_flags list
feature_flags enable --name quorum_queue
feature_flags enable_all
list deprecated_features
list deprecated_features_in_use
deprecated_features list
deprecated_features list_used
declare user --name u1 --password p --tags management
users declare --name u2 --password-hash HASH --tags monitoring
declare permissions --username u1 --configure .* --read .* --write .*
permissions declare --username u2 --configure a --read b --write c
declare user_limit --username u1 --name max-connections --value 5
user_limits declare --username u1 --name max-channels --value 7
user_limits list --user u1 -> max-channels: 7
delete user_limit --username u1 --name max-connections
user_limits delete --username u1 --name max-channels
declare policy --name p1 --pattern ^q --apply-to queues --definition {"max-length":100} --priority 3
policies declare --name p2 --pattern ^s --apply-to streams --definition {"max-age":"1D"}
policies declare --name p3 --pattern ^e --apply-to exchanges --definition {"alternate-exchange":"amq.fanout"}
policies declare_override --name p1 --definition {"max-length":50}
policies declare_blanket --name blank --apply-to queues --definition {"max-length":1000}
list policies -> overrides.p1
policies list -> -20
policies list_in
policies list_in --apply-to queues -> blank
policies list_matching_object --name q1 --type queues -> p1
policies list_conflicting
policies list_conflicting_in
policies patch --name p1 --definition {"message-ttl":60000}
policies update_definition --name p1 --definition-key max-length --new-value 99
policies update_definitions_of_all --definition-key max-length --new-value 98
policies update_definitions_of_all_in --definition-key max-length --new-value 97
policies delete_definition_keys --name p1 --definition-keys message-ttl
policies delete_definition_keys_from_all_in --definition-keys nothing
policies delete_definition_keys_from_all --definition-keys nothing
policies list -> max-length: 97
declare operator_policy --name o1 --pattern ^q --apply-to queues --definition {"max-length":1000}
operator_policies declare --name o2 --pattern ^z --apply-to classic_queues --definition {"message-ttl":1000}
operator_policies list_in
operator_policies list_in --apply-to queues -> o1
operator_policies list_matching_object --name q1 --type queues -> o1
operator_policies patch --name o1 --definition {"message-ttl":60000}
operator_policies update_definition --name o1 --definition-key max-length --new-value 99
operator_policies update_definitions_of_all_in --definition-key max-length --new-value 97
operator_policies delete_definition_keys --name o1 --definition-keys message-ttl
operator_policies delete_definition_keys_from_all_in --definition-keys nothing
operator_policies list -> max-length: 97
queues show --name q1 -> overrides.p1
delete operator_policy --name o1
operator_policies delete --name o2
delete policy --name p1
65 policies delete --name nope
policies delete --name nope --idempotently
health_check local_alarms
health_check cluster_wide_alarms
health_check node_is_quorum_critical
health_check port_listener --port PORT
69 health_check port_listener --port 1 -> No active listener
health_check protocol_listener --protocol amqp
69 health_check protocol_listener --protocol mqtt -> No active listener
definitions export --stdout -> "u2"
definitions export --file OUT
export definitions --stdout
definitions export_from_vhost --stdout
definitions export --stdout --transformations exclude_users exclude_permissions -> "users": []
definitions import --file OUT
import definitions --file OUT
definitions import_into_vhost --file IN
queues show --name imported -> imported
queues delete_multiple --name-pattern ^imported --dry-run
queues delete_multiple --name-pattern ^imported --approve
65 queues show --name imported
global_parameters list -> internal_cluster_id
passwords salt_and_hash secret
rebalance queues
queues rebalance
federation list_all_upstreams
federation list_all_links
shovels list_all
shovels list
delete shovel --name sh --idempotently
vhosts enable_deletion_protection --name /
vhosts delete --name nope --idempotently
vhosts delete_multiple --name-pattern ^nope --dry-run
65 global_parameters set --name cluster_name --value {"a":1} -> cluster_name is not a text
global_parameters set --name a --value {"a":1}
global_parameters list -> a
global_parameters clear --name a
65 parameters set --name up --component federation-upstream --value {"uri":"amqp://localhost"} -> component federation-upstream not found
65 declare parameter --name up --component federation-upstream --value {"uri":"amqp://localhost"} -> federation-upstream not found
65 federation declare_upstream --name f --uri amqp://localhost -> component federation-upstream not found
declare vhost_limit --name max-queues --value 100
vhost_limits declare --name max-connections --value 1000
vhost_limits list -> max-queues
parameters list_all -> vhost-limits
parameters list --component vhost-limits -> limits
vhost_limits delete --name max-queues
delete vhost_limit --name max-connections
65 vhosts declare --name other -> one virtual host
65 declare vhost --name other -> one virtual host
65 vhosts disable_deletion_protection --name / -> the only virtual host
65 delete vhost --name / -> the only virtual host
purge queue --name q1
queues purge --name q2
bindings delete --source e1 --destination-type exchange --destination e2 --routing-key b --arguments {"x":1}
delete binding --source e1 --destination-type queue --destination q1 --routing-key a.#
exchanges unbind --source e1 --destination-type queue --destination q2 --routing-key c
delete binding --source e1 --destination-type queue --destination q1 --routing-key a.# --idempotently
delete exchange --name e1
exchanges delete --name e2
65 delete exchange --name e2
exchanges delete --name e2 --idempotently
delete queue --name q1
queues delete --name q2
65 queues delete --name q2
queues delete --name q2 --idempotently
delete stream --name s1
streams delete --name s2
delete queue --name q3
delete permissions --username u1
permissions delete --username u2
delete user --name u1
users delete --name u2
65 users delete --name u2
list queues --table-style markdown
"""
# Of the tool's subcommands: those that ask no broker, and those of RabbitMQ's commercial form
LEFT_OUT = ("config_file ", "shell ", "tanzu ", "help ")
# Refused as "parameters set" is, or 404 as what is not there
ALIKE = (
    r"(federation|shovels) (declare|delete|disable|enable)",
    r"parameters clear",
    r"delete (parameter|shovel)",
)
CONNECTIONS = """
list connections -> PEER
connections list -> PEER
connections list_of_user --username guest -> PEER
list user_connections --username guest -> PEER
users connections --username guest -> PEER
list channels -> PEER
channels list -> PEER
list consumers -> ctag
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A broker with --data, which quorum queues need."""
    process = Served("--data", str(tmp_path_factory.mktemp("data")))
    yield process
    assert process.alive() and process.stop() == 0
    assert "Traceback" not in process.errors and "an error of this broker" not in process.errors, process.errors


def run(process, line, words):
    """One line with its expected status and words; what it tells."""
    status, line, _, told = re.fullmatch(r"(\d+ )?(.*?)( -> (.*))?", line).groups()
    given = [word if word not in words else words[word] for word in line.split()]
    command = [PATH, "-H", "127.0.0.1", "-P", str(process.http_port), "-u", "guest", "-p", "guest", *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == int(status or 0), (line, done.stdout, done.stderr)
    assert words.get(told, told or "") in done.stdout + done.stderr, (line, done.stdout, done.stderr)
    return done.stdout


def test_each_subcommand(kept, tmp_path):
    node = Api(kept.http_port, "guest").get("/overview")["node"]
    (tmp_path / "in.json").write_text(json.dumps(DEFINITIONS))
    files = {"OUT": str(tmp_path / "out.json"), "IN": str(tmp_path / "in.json")}
    for line in LINES.strip().split("\n"):
        run(kept, line, {"NODE": node, "PORT": str(kept.port), "HASH": HASH, **files})
    assert json.loads((tmp_path / "out.json").read_text())["product_name"] == "Leveret"


def test_connections_are_listed_and_closed(kept):
    for words in ("close connection --name PEER", "connections close --name PEER", "close user_connections --username guest"):
        connection = pika.BlockingConnection(pika.URLParameters(kept.url))
        channel = connection.channel()
        channel.queue_declare("listed", auto_delete=True)
        channel.basic_consume("listed", lambda *_: None)
        (row,) = Api(kept.http_port, "guest").get("/connections")
        for line in (*CONNECTIONS.strip().split("\n"), words):
            run(kept, line, {"PEER": row["name"]})
        with pytest.raises(pika.exceptions.AMQPError):
            connection.process_data_events(10)
            connection.channel()
    run(kept, "connections close_of_user --username guest", {})


def test_no_subcommand_is_left_out():
    """Each that this version of the tool has stands in a line above."""
    lines = {" ".join(re.sub(r"^\d+ ", "", line).split()[:2]) for line in (LINES + CONNECTIONS).strip().split("\n")}
    lines |= {"close connection", "connections close", "close user_connections", "connections close_of_user"}
    missing = [f"{group} {name}" for group in subcommands() for name in subcommands(group) if f"{group} {name}" not in lines]
    known = re.compile("|".join((*LEFT_OUT, "health_check deprecated_features_in_use", *ALIKE)))
    assert [each for each in missing if not known.match(each)] == []


def subcommands(*group):
    """The names of a group's subcommands, in the tool's own words."""
    told = subprocess.run([PATH, *group, "--help"], capture_output=True, text=True, timeout=60).stdout
    block = told.partition("Commands:")[2].partition("\n\n")[0]
    return [name for name in re.findall(r"^  ([a-z_0-9]+)", block, re.M) if name != "help"]
