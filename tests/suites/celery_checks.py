"""A program: starts celery workers on a broker and runs checks against them. `python celery_checks.py BROKER_URL FOLDER`.

The last line of standard output is JSON: {check: "passed" or what went wrong}. Results travel over `rpc://` (a reply queue); only the
chord's are kept in files, because celery's rpc:// refuses chords by itself whatever the broker (its header, its unlocking task with
retries and its body still go through the broker). Only processes started here are ended.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import checks  # noqa: E402 - the path has to be set first

WAIT_S_MAX = 90
WORKER = "hare@suites"
ANSWER = {"destination": [WORKER], "timeout": WAIT_S_MAX}  # it comes back with the answer, not with the time


def start_worker(folder, name):
    """A worker of celery_tasks with two processes, whose log is in `folder`."""
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "celery_tasks",
        "worker",
        "--concurrency",
        "2",
        "-E",
        "-n",
        name,
        "--loglevel",
        "WARNING",
        "--logfile",
        os.path.join(folder, "worker.log"),
    ]
    return subprocess.Popen(command, cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_worker(app):
    """Until the worker answers a ping."""
    limit = time.monotonic() + WAIT_S_MAX
    while not app.control.ping(destination=[WORKER], timeout=1):
        assert time.monotonic() < limit, "the worker did not answer a ping"


def check_hundred_tasks(app, tasks):
    results = [tasks.add.delay(number, number) for number in range(100)]
    assert [result.get(timeout=WAIT_S_MAX) for result in results] == [2 * number for number in range(100)]


def check_a_group_and_a_chain(app, tasks):
    from celery import chain, group

    assert group(tasks.add.s(number, 1) for number in range(20))().get(timeout=WAIT_S_MAX) == list(range(1, 21))
    assert chain(tasks.add.s(1, 2), tasks.add.s(4), tasks.add.s(8))().get(timeout=WAIT_S_MAX) == 15


def check_retries(app, tasks):
    results = [tasks.third_time.delay() for _ in range(10)]
    assert [result.get(timeout=WAIT_S_MAX) for result in results] == [2] * 10


def check_an_error_comes_back(app, tasks):
    try:
        tasks.fail.delay("as it should").get(timeout=WAIT_S_MAX)
    except ValueError as error:
        assert str(error) == "as it should"
    else:
        raise AssertionError("no error came back")


def check_rate_limit(app, tasks):
    began = time.monotonic()
    results = [tasks.slow_lane.delay(number) for number in range(20)]
    assert sorted(result.get(timeout=WAIT_S_MAX) for result in results) == list(range(20))
    assert time.monotonic() - began > 1.5, "10/s was not kept"


def check_remote_control(app, tasks):
    assert app.control.ping(**ANSWER) == [{WORKER: {"ok": "pong"}}]
    changed = app.control.rate_limit("celery_tasks.slow_lane", "1000/s", reply=True, **ANSWER)
    assert changed == [{WORKER: {"ok": "new rate limit set successfully"}}], changed
    inspected = app.control.inspect(**ANSWER)
    assert "celery_tasks.add" in inspected.registered()[WORKER]
    assert [queue["name"] for queue in inspected.active_queues()[WORKER]] == ["celery"]


def check_the_prefetch_grows_with_the_pool(app, tasks):
    before = app.control.inspect(**ANSWER).stats()[WORKER]["prefetch_count"]
    assert app.control.pool_grow(1, reply=True, **ANSWER) == [{WORKER: {"ok": "pool will grow"}}]
    limit = time.monotonic() + WAIT_S_MAX
    while app.control.inspect(**ANSWER).stats()[WORKER]["prefetch_count"] <= before:
        assert time.monotonic() < limit
    check_hundred_tasks(app, tasks)


def check_countdown(app, tasks):
    asked = time.time()
    assert tasks.started_at.apply_async(countdown=1).get(timeout=WAIT_S_MAX) - asked >= 1


def check_a_revoked_task_does_not_run(app, tasks):
    from celery.exceptions import TaskRevokedError

    result = tasks.add.apply_async((1, 1), countdown=2)
    result.revoke()
    try:
        result.get(timeout=WAIT_S_MAX)
    except TaskRevokedError:
        return
    raise AssertionError("it ran")


def check_task_whose_process_dies_is_delivered_again(app, tasks):
    assert tasks.survive.delay().get(timeout=WAIT_S_MAX) is True


def check_another_queue_while_the_worker_runs(app, tasks):
    started = app.control.add_consumer("suites.late", reply=True, **ANSWER)
    assert started == [{WORKER: {"ok": "add consumer suites.late"}}], started
    assert tasks.add.apply_async((2, 3), queue="suites.late").get(timeout=WAIT_S_MAX) == 5
    ended = app.control.cancel_consumer("suites.late", reply=True, **ANSWER)
    assert ended == [{WORKER: {"ok": "no longer consuming from suites.late"}}], ended


def check_events(app, tasks):
    """The worker's events go out by a topic exchange: tasks are sent until the receiver, once it is bound, has seen one succeed."""
    seen = threading.Event()

    def watch():
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"task-succeeded": lambda event: seen.set()})
            for _ in receiver.itercapture(limit=None, timeout=WAIT_S_MAX, wakeup=False):
                if seen.is_set():
                    return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    limit = time.monotonic() + WAIT_S_MAX
    while not seen.wait(0.3):
        assert time.monotonic() < limit, "no event came"
        tasks.add.delay(1, 1).get(timeout=WAIT_S_MAX)


def check_a_purge_counts(app, tasks):
    for number in range(7):
        tasks.add.apply_async((number, 1), queue="suites.purged")
    with app.connection_for_write() as connection:
        assert connection.default_channel.queue_purge("suites.purged") == 7
        connection.default_channel.queue_delete("suites.purged")


def chords(folder, url):
    """The chord, on a worker whose results are files."""
    os.makedirs(os.path.join(folder, "results"))
    os.environ["RESULTS_URL"] = "file://" + os.path.join(folder, "results")
    program = (
        "import celery, celery_tasks as t; print(celery.chord(t.add.s(n, n) for n in range(20))(t.total.s()).get(timeout=%d))" % WAIT_S_MAX
    )
    worker = start_worker(folder, "chords@suites")
    try:
        done = subprocess.run([sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True, timeout=2 * WAIT_S_MAX)
        assert done.stdout.strip() == "380", (done.stdout, done.stderr[-400:])
    finally:
        end_worker(worker)


def end_worker(worker):
    """A warm shutdown: its exit status."""
    worker.send_signal(signal.SIGTERM)
    try:
        return worker.wait(WAIT_S_MAX)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
        raise


def main(url, folder):
    os.environ["BROKER_URL"] = url
    os.environ["RESULTS_URL"] = "rpc://"
    import celery_tasks

    worker = start_worker(folder, WORKER)
    try:
        outcome = {"worker_starts": checks.told(wait_for_worker, (celery_tasks.app,))}
        outcome.update(checks.run(sys.modules[__name__], celery_tasks.app, celery_tasks))
    finally:
        status = end_worker(worker)
    outcome["worker_ends_in_good_order"] = checks.PASSED if status == 0 else f"failed: exit status {status}"
    outcome["chord"] = checks.told(chords, (folder, url))
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
