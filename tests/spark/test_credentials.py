"""A password is read where the connection is made, and left nowhere: no plan, no event log, no checkpoint, no progress, no table."""

import os

import brokers
import pytest
from conftest import PASSWORD, PASSWORD_VARIABLE
from queries import finished
from telemetry import Stream, body

from leveret.ports.client import connect


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A broker that knows one user, with the queues `alarms` and `readings`, the latter with 20 messages in it."""
    config = tmp_path_factory.mktemp("guarded") / "broker.toml"
    config.write_text(f'[[user]]\nname = "gauge"\npassword = "{PASSWORD}"\nconfigure = ".*"\nwrite = ".*"\nread = ".*"\n')
    broker = brokers.start_leveret(more=("--config", str(config)))
    broker.open_url, broker.url = broker.url.replace("//", "//gauge@"), broker.url.replace("//", f"//gauge:{PASSWORD}@")
    stream = Stream(broker, "readings")
    stream.publish([body("kiln", "temperature", number) for number in range(20)])
    stream.close()
    connection = connect(broker.url, brokers.PATIENCE_MS)
    connection.queue_declare("alarms", durable=True)
    connection.close()
    yield broker
    broker.end()


def files_with(secret, *folders):
    """(those of all files in the folders that hold the secret, how many files there are)."""
    paths = [os.path.join(folder, name) for top in folders for folder, _, names in os.walk(top) for name in names]
    found = []
    for path in paths:
        with open(path, "rb") as file:
            if secret.encode() in file.read():
                found.append(path)
    return found, len(paths)


@pytest.mark.parametrize("option", ["passwordEnv", "passwordFile"])
def test_a_password_is_in_no_plan_event_log_checkpoint_or_progress(spark, spark_traces, guarded, tmp_path, capsys, option):
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    login = {"url": guarded.open_url, option: PASSWORD_VARIABLE if option == "passwordEnv" else str(secret)}
    frame = spark.read.format("amqp").options(**login, stream="readings").load()
    assert frame.count() == 20
    frame.explain("extended")
    rows = spark.readStream.format("amqp").options(**login, stream="readings").schema("value binary").load()
    query = finished(
        lambda: (
            rows.writeStream.format("amqp")
            .options(**login, routingKey="alarms", delivery="exactlyOnce")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
    )
    query.explain(True)
    told = capsys.readouterr().out + "".join(progress.json for progress in query.recentProgress)
    assert "Physical Plan" in told and '"numInputRows":20' in told.replace(" ", "")
    assert PASSWORD not in told
    found, count = files_with(PASSWORD, tmp_path / "checkpoint", spark_traces)
    assert found == [] and count >= 5
    events, _ = files_with("SparkListenerSQLExecutionStart", spark_traces / "events")
    assert events, "the event log holds no plan: nothing was looked at"
