"""The blocking client (ports/client.py) at work on a `micropython` binary: `micropython unix_client.py URL`; one line of JSON at the end.

Declares, publishes with confirms, consumes with acks, asks for what is not there, closes, connects again and finds the queue empty.
"""

import json
import sys

from leveret.ports.client import ChannelClosed, connect

MESSAGES = 200
QUEUE = "unix-client"
SIZES = (0, 1, 255, 4000)

url = sys.argv[1]
client = connect(url)
client.queue_declare(QUEUE, durable=True)
bodies = [bytes((number & 0xFF,)) * SIZES[number % len(SIZES)] for number in range(MESSAGES)]
for number in range(MESSAGES):
    client.publish("", QUEUE, bodies[number], {"delivery_mode": 2, "message_id": "m/%d" % number}, mandatory=True)
client.qos(20)
client.consume(QUEUE)
received = wrong = 0
while received < MESSAGES:
    for message in client.poll(5000):
        if bytes(message.body) != bodies[received] or message.properties["message_id"] != "m/%d" % received:
            wrong += 1
        received += 1
        client.ack(message)
try:
    client.queue_declare("not-there", passive=True)
    code = 0
except ChannelClosed as closed:
    code = closed.code
client.close()
client = connect(url)
left = client.queue_declare(QUEUE, durable=True)[1]
client.queue_delete(QUEUE)
client.close()
print(json.dumps({"received": received, "wrong": wrong, "closed_with": code, "left": left}))
