"""The celery application that the worker and celery_checks.py share. BROKER_URL and RESULTS_URL come from the environment."""

import os
import signal
import time

from celery import Celery

app = Celery("celery_tasks", broker=os.environ["BROKER_URL"], backend=os.environ["RESULTS_URL"])
app.conf.update(broker_connection_retry_on_startup=True, result_expires=600, result_chord_retry_interval=0.2)


@app.task
def add(left, right):
    return left + right


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail(text):
    raise ValueError(text)


@app.task(bind=True, max_retries=5)
def third_time(self):
    """Succeeds at the third attempt: the number of retries."""
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    return self.request.retries


@app.task(rate_limit="10/s")
def slow_lane(number):
    return number


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True)
def survive(self):
    """Takes its own process down when it is delivered first: True when the message came back."""
    if not self.request.delivery_info["redelivered"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return self.request.delivery_info["redelivered"]


@app.task
def started_at():
    return time.time()
