// rhea: `node rhea_client.js PLACE [SCENARIO...]`, PLACE as programs.py gives it; a line for each: `ok NAME`, or `failed NAME: why`.
"use strict";
const assert = require("node:assert/strict");
const rhea = require("rhea");

const WAIT_MS = 8000;
const NOTHING_MS = 400;
const place = JSON.parse(process.argv[2]);
const chosen = process.argv.slice(3);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The next of these events of a rhea object; an error for any of the others. */
function next(source, wanted, unwanted = []) {
    return new Promise((done, fail) => {
        const timer = setTimeout(() => fail(new Error("no " + wanted)), WAIT_MS);
        const over = (end) => (context) => {
            clearTimeout(timer);
            end(context);
        };
        source.once(wanted, over(done));
        for (const name of unwanted) {
            source.once(name, over((context) => fail(new Error(name + ": " + String((context.receiver || context.sender || context.connection || {}).error)))));
        }
    });
}

/** What one scenario has: connections of its own that are closed behind it. */
class World {
    constructor(name) {
        this.node = place.client + "." + name;
        this.queue = place.queue.replace("%s", this.node);
        this.other = place.queue.replace("%s", this.node + ".other");
        this.topic = place.topic.replace("%s", this.node);
        this.subscription = place.subscription.replace("%s", this.node);
        this.connections = [];
    }

    async connected(options = {}) {
        const container = rhea.create_container({ id: options.container_id || "rhea-" + Math.random() });
        const connection = container.connect({
            host: place.host, port: place.port, username: place.user, password: place.password, reconnect: false, ...options,
        });
        connection.on("error", () => {});
        this.connections.push(connection);
        await next(connection, "connection_open", ["connection_error", "disconnected"]);
        return connection;
    }

    async sender(connection, options) {
        const sender = connection.open_sender(options);
        await next(sender, "sendable", ["sender_error"]);
        return sender;
    }

    /** A receiver that keeps what comes in `got`, as [message, delivery]. */
    async receiver(connection, options) {
        const given = typeof options === "string" ? { source: options } : options;
        const receiver = connection.open_receiver({ autoaccept: false, credit_window: 0, ...given });
        receiver.got = [];
        receiver.on("message", (context) => receiver.got.push([context.message, context.delivery]));
        await next(receiver, "receiver_open", ["receiver_error"]);
        return receiver;
    }

    async send(connection, address, ...messages) {
        const sender = await this.sender(connection, address);
        for (const message of messages) {
            sender.send(message);
            await next(sender, "accepted", ["rejected", "released", "modified"]);
        }
        return sender;
    }

    close() {
        for (const connection of this.connections) {
            connection.close();
        }
    }
}

async function until(true_) {
    for (let waited = 0; !true_(); waited += 10) {
        assert.ok(waited < WAIT_MS, "it did not come: " + true_);
        await pause(10);
    }
}

async function take(receiver, count) {
    receiver.add_credit(count);
    const before = receiver.got.length;
    await until(() => receiver.got.length >= before + count);
    return receiver.got.slice(before).map(([message, delivery]) => {
        delivery.accept();
        return message;
    });
}

async function nothing(receiver) {
    const before = receiver.got.length;
    receiver.add_credit(1);
    await pause(NOTHING_MS);
    assert.equal(receiver.got.length, before, "a message came");
}

const scenarios = {
    async scenario_log_in(world) {
        await world.connected();
        await assert.rejects(world.connected({ password: "wrong" }));
    },

    async scenario_round_trip(world) {
        const connection = await world.connected();
        await world.send(connection, world.queue, { body: "hello" });
        const receiver = await world.receiver(connection, world.queue);
        assert.equal((await take(receiver, 1))[0].body, "hello");
        await nothing(receiver);
    },

    async scenario_bodies(world) {
        const connection = await world.connected();
        const bodies = [null, true, 7, "text \u20ac", Buffer.from("octets"), ["list", 1], { a: { map: 1 } }, "long ".repeat(1000)];
        await world.send(connection, world.queue, ...bodies.map((body) => ({ body })));
        const got = await take(await world.receiver(connection, world.queue), bodies.length);
        assert.deepEqual(got.map((message) => message.body), bodies);
    },

    async scenario_data_sections(world) {
        const connection = await world.connected();
        const one = rhea.message.data_section(Buffer.from("one"));
        const several = rhea.message.data_sections([Buffer.from("a"), Buffer.from("b")]);
        const sequence = rhea.message.sequence_section([1, "two"]);
        await world.send(connection, world.queue, { body: one }, { body: several }, { body: sequence });
        const got = await take(await world.receiver(connection, world.queue), 3);
        assert.deepEqual(got[0].body.content, Buffer.from("one"));
        assert.deepEqual([got[1].body.multiple, got[1].body.content.map(String)], [true, ["a", "b"]]);
        assert.deepEqual(got[2].body.content, [1, "two"]);
    },

    async scenario_properties(world) {
        const connection = await world.connected();
        const message = {
            durable: true, priority: 9, message_id: "m", user_id: Buffer.from(place.user), subject: "s", reply_to: "r", correlation_id: "c",
            content_type: "text/plain", content_encoding: "gzip", group_id: "g", group_sequence: 3, reply_to_group_id: "rg",
            creation_time: new Date(1700000000000), absolute_expiry_time: new Date(Date.now() + 3600000), ttl: 60000,
            application_properties: { text: "t", number: 1, no: false }, message_annotations: { "x-opt-mine": "annotated" },
            body: "b",
        };
        await world.send(connection, world.queue, message);
        const [got] = await take(await world.receiver(connection, world.queue), 1);
        for (const name of Object.keys(message).filter((each) => each !== "ttl")) {
            assert.deepEqual(got[name], message[name], name);
        }
        assert.ok(got.ttl > 0 && got.ttl <= 60000, "ttl " + got.ttl);
    },

    async scenario_large_message(world) {
        const connection = await world.connected({ max_frame_size: 8192 });
        const octets = Buffer.alloc(1 << 20, "0123456789");
        await world.send(connection, world.queue, { body: rhea.message.data_section(octets) });
        const [got] = await take(await world.receiver(connection, world.queue), 1);
        assert.ok(octets.equals(got.body.content));
    },

    async scenario_order_of_1000(world) {
        const connection = await world.connected();
        const receiver = await world.receiver(connection, { source: world.queue, credit_window: 20, autoaccept: true });
        const sender = connection.open_sender({ target: world.queue, snd_settle_mode: 1 });
        let sent = 0;
        sender.on("sendable", () => {
            while (sender.sendable() && sent < 1000) {
                sender.send({ body: sent++ });
            }
        });
        await until(() => receiver.got.length === 1000);
        assert.deepEqual(receiver.got.map(([message]) => message.body), [...Array(1000).keys()]);
    },

    async scenario_credit_and_drain(world) {
        const connection = await world.connected();
        await world.send(connection, world.queue, ...[0, 1, 2, 3].map((body) => ({ body })));
        const receiver = await world.receiver(connection, world.queue);
        receiver.add_credit(2);
        await until(() => receiver.got.length === 2);
        await pause(NOTHING_MS);
        assert.equal(receiver.got.length, 2);
        receiver.add_credit(10);
        receiver.drain_credit();
        await next(receiver, "receiver_drained");
        assert.deepEqual([receiver.got.length, receiver.credit], [4, 0]);
    },

    async scenario_outcomes(world) {
        const connection = await world.connected();
        await world.send(connection, world.queue, { body: "again" });
        const receiver = await world.receiver(connection, world.queue);
        const ends = [(each) => each.release({}), (each) => each.release({ delivery_failed: true }), (each) => each.reject({})];
        const counts = [];
        for (const end of ends) {
            receiver.add_credit(1);
            await until(() => receiver.got.length === counts.length + 1);
            const [message, delivery] = receiver.got[counts.length];
            counts.push(message.delivery_count || 0);
            end(delivery);
        }
        await nothing(receiver);
        assert.deepEqual(counts, [0, 0, 1]);
    },

    async scenario_settle_second(world) {
        const connection = await world.connected();
        await world.send(connection, world.queue, { body: "once" });
        const receiver = await world.receiver(connection, { source: world.queue, rcv_settle_mode: 1, autosettle: false });
        receiver.add_credit(1);
        await until(() => receiver.got.length === 1);
        const settled = next(receiver, "settled");
        receiver.got[0][1].update(false, rhea.message.accepted().described());
        await settled;
        await nothing(receiver);
    },

    async scenario_request_response(world) {
        const server = await world.connected();
        const requests = await world.receiver(server, world.queue);
        const client = await world.connected();
        const answers = await world.receiver(client, { source: { dynamic: true } });
        assert.ok(answers.source.address);
        await world.send(client, world.queue, { body: "question", reply_to: answers.source.address, correlation_id: 1 });
        const [request] = await take(requests, 1);
        await world.send(server, { target: {} }, { to: request.reply_to, correlation_id: request.correlation_id, body: "answer" });
        const [answer] = await take(answers, 1);
        assert.deepEqual([answer.body, answer.correlation_id], ["answer", 1]);
    },

    async scenario_missing_node(world) {
        const connection = await world.connected();
        const receiver = connection.open_receiver(place.queue.replace("%s", "rhea.nowhere"));
        await next(receiver, "receiver_error");
        assert.equal(receiver.error.condition, "amqp:not-found");
        await world.send(connection, world.queue, { body: "alive" });
    },

    async scenario_selector(world) {
        const connection = await world.connected();
        const colours = ["green", "red", "green", "red"];
        await world.send(connection, world.queue, ...colours.map((colour, body) => ({ body, application_properties: { colour } })));
        const source = { address: world.queue, filter: rhea.filter.selector("colour = 'red'") };
        const got = await take(await world.receiver(connection, { source }), 2);
        assert.deepEqual(got.map((message) => message.body), [1, 3]);
    },

    async scenario_browse(world) {
        const connection = await world.connected();
        await world.send(connection, world.queue, { body: "stays" });
        const browser = await world.receiver(connection, { source: { address: world.queue, distribution_mode: "copy" } });
        assert.equal((await take(browser, 1))[0].body, "stays");
        browser.close();
        assert.equal((await take(await world.receiver(connection, world.queue), 1))[0].body, "stays");
    },

    async scenario_topic(world) {
        const connection = await world.connected();
        const receivers = [await world.receiver(connection, world.subscription), await world.receiver(connection, world.subscription)];
        await world.send(connection, world.topic, { body: 1 }, { body: 2 });
        for (const receiver of receivers) {
            assert.deepEqual((await take(receiver, 2)).map((message) => message.body), [1, 2]);
        }
    },

    async scenario_durable_subscription(world) {
        const options = { name: "kept", source: { address: world.subscription, durable: 2, expiry_policy: "never" } };
        const first = await world.connected({ container_id: "rhea-durable" });
        const receiver = await world.receiver(first, options);
        receiver.detach();
        await next(receiver, "receiver_close");
        first.close();
        await next(first, "connection_close");
        await world.send(await world.connected(), world.topic, { body: "kept" });
        const again = await world.receiver(await world.connected({ container_id: "rhea-durable" }), options);
        assert.equal((await take(again, 1))[0].body, "kept");
        again.close();
        await next(again, "receiver_close");
    },

    async scenario_many_sessions(world) {
        const connection = await world.connected();
        const receiver = await world.receiver(connection, world.queue);
        for (let number = 0; number < 20; number++) {
            const session = connection.create_session();
            session.open();
            const sender = session.open_sender(world.queue);
            await next(sender, "sendable", ["sender_error"]);
            sender.send({ body: number });
            await next(sender, "accepted");
            session.close();
        }
        assert.deepEqual((await take(receiver, 20)).map((message) => message.body), [...Array(20).keys()]);
    },

    async scenario_idle_time_out(world) {
        const connection = await world.connected({ idle_time_out: 1500 });
        let lost = false;
        connection.on("disconnected", () => (lost = true));
        await pause(3200);
        assert.ok(!lost, "the connection was lost");
        await world.send(connection, world.queue, { body: "still here" });
    },

    async scenario_anonymous(world) {
        const connection = await world.connected({ username: "anonymous", password: undefined });
        await world.send(connection, world.queue, { body: "from nobody" });
    },
};

(async () => {
    for (const [title, scenario] of Object.entries(scenarios)) {
        const name = title.replace(/^scenario_/, "");
        if (chosen.length && !chosen.includes(name)) {
            continue;
        }
        const world = new World(name);
        try {
            await scenario(world);
            console.log("ok " + name);
        } catch (error) {
            console.error(name, error);
            console.log("failed " + name + ": " + String(error).replace(/\s+/g, " ").slice(0, 600));
        }
        world.close();
    }
    process.exit(0);
})();
