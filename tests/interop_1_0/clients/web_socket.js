// rhea (1.0) and CloudAMQP's amqp-client (0-9-1) over WebSocket: `node web_socket.js URL [CA]`; prints `ok NAME` for each, or an error and status 1.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const rhea = require("rhea");
const WebSocket = require("ws");

const [url, authority] = process.argv.slice(2);
const trusted = authority ? { ca: fs.readFileSync(authority) } : {};
const body = "x".repeat(300000);

/** rhea: its own WebSocket transport, with the subprotocol of the binding; a large message, and 500 small ones. */
async function over_1_0(subprotocol) {
    const container = rhea.create_container();
    const connect = container.websocket_connect(class extends WebSocket {
        constructor(place, protocols) {
            super(place, protocols, trusted);
        }
    });
    const connection = container.connect({ connection_details: connect(url, [subprotocol]), username: "guest", password: "guest", reconnect: false });
    const sent = [body, ...Array.from({ length: 500 }, (_, number) => "m" + number)];
    const got = [];
    await new Promise((done, fail) => {
        const timer = setTimeout(() => fail(new Error("only " + got.length + " came")), 20000);
        for (const name of ["connection_error", "disconnected", "sender_error", "receiver_error", "rejected"]) {
            connection.on(name, (context) => fail(new Error(name + " " + (context.error || (context.connection || {}).error))));
        }
        connection.open_receiver({ source: "/queues/web", credit_window: 50 }).on("message", (context) => {
            got.push(context.message.body);
            if (got.length === sent.length) {
                clearTimeout(timer);
                done();
            }
        });
        const left = [...sent];
        connection.open_sender({ target: "/queues/web" }).on("sendable", (context) => {
            while (left.length && context.sender.sendable()) {
                context.sender.send({ body: left.shift() });
            }
        });
    });
    assert.deepEqual(got, sent);
    connection.removeAllListeners("disconnected");
    connection.close();
}

/** CloudAMQP's client, which offers no subprotocol: a publish, confirmed, and its delivery. */
async function over_0_9_1() {
    globalThis.WebSocket = class extends WebSocket {
        constructor(place) {
            super(place, [], trusted);
        }
    };
    const { AMQPWebSocketClient } = require("@cloudamqp/amqp-client");
    const connection = await new AMQPWebSocketClient(url, "/", "guest", "guest").connect();
    const channel = await connection.channel();
    await channel.confirmSelect();
    const queue = await channel.queueDeclare("", { exclusive: true });
    const came = new Promise((done) => channel.basicConsume(queue.name, { noAck: true }, (message) => done(message.bodyString())));
    await channel.basicPublish("", queue.name, body);
    assert.equal(await came, body);
    await connection.close();
}

(async () => {
    await over_1_0("amqp");
    console.log("ok rhea");
    await over_1_0("AMQPWSB10");
    console.log("ok azure's name");
    await over_0_9_1();
    console.log("ok amqp-client");
    process.exit(0);
})().catch((error) => {
    console.error(error);
    process.exit(1);
});
