// The views of the page: a function each, which asks the API and returns what stands below the view's name. What they are made of: page.js.
"use strict";

const PAGE_SIZE = 50;
const DRAWN_MAX = 100; // bindings in the drawing

const LIMITS = {
  arena_size: "Bodies and properties of messages in memory", message_count_max: "Messages in memory", entry_count_max: "Places of messages in queues",
  memory_max: "Memory of the whole process", queue_count_max: "Queues and streams", exchange_count_max: "Exchanges", binding_count_max: "Bindings",
  connection_count_max: "Connections", channel_count_max: "Channels and sessions", consumer_count_max: "Consumers", policy_count_max: "Policies, parameters",
  user_count_max: "Users",
};

const VIEWS = {
  async Overview() {
    const told = await get("/overview?lengths_age=600&lengths_incr=5&msg_rates_age=600&msg_rates_incr=5");
    const stats = told.message_stats, queues = told.queue_totals, totals = told.object_totals;
    const rate = (name) => grouped(Number(stats[name + "_details"].rate.toFixed(1))) + "/s";
    const samples = (name) => speeds(stats[name + "_details"].samples || []);
    const alarms = await get("/health/checks/alarms").then(() => [], (error) => (error.json && error.json.alarms) || [{ resource: "", reason: error.message }]);
    return [
      alarms.length === 0 ? make("p", {}, "No alarm: publishers are read, messages are kept.")
        : make("p", { class: "bad", role: "alert" }, ...alarms.map((each) => "Alarm, " + each.resource + ": " + each.reason + ". ")),
      figures([["Messages ready", queues.messages_ready], ["Unacknowledged", queues.messages_unacknowledged], ["Published", rate("publish")],
        ["Delivered", rate("deliver_get")], ["Acknowledged", rate("ack")], ["Connections", totals.connections], ["Channels", totals.channels],
        ["Consumers", totals.consumers], ["Queues", totals.queues], ["Exchanges", totals.exchanges]]),
      chart("Messages in all queues", [["Ready", queues.messages_ready_details.samples || []], ["Unacknowledged", queues.messages_unacknowledged_details.samples || []]]),
      chart("Messages in a second", [["Published", samples("publish")], ["Delivered", samples("deliver_get")], ["Acknowledged", samples("ack")]], "/s"),
      make("p", {}, told.product_name + " " + told.product_version + " on " + told.cluster_name + ", it listens on " +
        (told.listeners.map((each) => each.protocol + "://" + each.ip_address + ":" + each.port).join(", ") || "what an administrator sees")),
    ];
  },
  async Queues(state) {
    const path = "/queues?page=" + state.page + "&page_size=" + PAGE_SIZE + "&use_regex=false&name=" + part(state.name) +
      "&columns=name,vhost,type,state,policy,messages_ready,messages_unacknowledged,consumers,message_stats.publish_details.rate";
    const told = await get(path);
    const rows = told.items.map((row) => [
      long(row.name), row.type, row.state, row.policy || "", row.messages_ready, row.messages_unacknowledged, row.consumers,
      Number(row.message_stats.publish_details.rate.toFixed(1)),
      make("span", { class: "row" },
        button("Look", "Look into " + row.name, async () => look(row)),
        button("Purge", "Purge " + row.name, () => ask("DELETE", queuePath(row) + "/contents"), "Drop all ready messages of " + row.name + "?"),
        button("Delete", "Delete " + row.name, () => ask("DELETE", queuePath(row)), "Delete the queue " + row.name + " with its messages?")),
    ]);
    return [
      form([["name", "Names with", { value: state.name }]], "Show", async (values) => { state.name = values.name; state.page = 1; await show(); }),
      make("p", {}, several(told.filtered_count, "queue") + ", page " + told.page + " of " + told.page_count + " ",
        ...(told.page > 1 ? [make("button", { type: "button", onclick: () => { state.page -= 1; show(); } }, "Back")] : []),
        ...(told.page < told.page_count ? [make("button", { type: "button", onclick: () => { state.page += 1; show(); } }, "Further")] : [])),
      table(["Name", "Type", "State", "Policy", "Ready", "Unacknowledged", "Consumers", "Per second", "Do"], rows),
      make("div", { id: "looked" }),
      make("h2", {}, "Declare a queue"),
      form([["name", "Name", { required: true }], ["type", "Type", { choices: ["classic", "quorum", "stream"] }]], "Declare", async (values) => {
        await ask("PUT", "/queues/" + part(state.host) + "/" + part(values.name), { durable: true, arguments: { "x-queue-type": values.type } });
        await show(true);
        tell("Declared " + values.name);
      }),
      make("h2", {}, "Move messages"),
      form([["from", "From queue", { required: true }], ["to", "To queue", { required: true }]], "Move", async (values) => {
        const told = await ask("POST", "/leveret/queues/" + part(state.host) + "/" + part(values.from) + "/move", { to: values.to });
        await show(true);
        tell("Moved " + told.moved + " messages, " + told.left + " are left" + (told.reason ? ": " + told.reason : ""));
      }),
      make("h2", {}, "Publish"),
      form([["exchange", "Exchange (empty: the default one)"], ["key", "Routing key"], ["body", "Body", { lines: true }]], "Publish", async (values) => {
        const told = await ask("POST", "/exchanges/" + part(state.host) + "/" + part(values.exchange || "amq.default") + "/publish",
          { properties: { delivery_mode: 2 }, routing_key: values.key, payload: values.body, payload_encoding: "string" });
        tell(told.routed ? "Published" : "Published, and no queue gets it");
      }),
    ];
  },
  async Exchanges(state) {
    const exchanges = await get("/exchanges?columns=name,type,durable");
    const bindings = await get("/bindings?columns=source,destination,destination_type,routing_key,properties_key");
    const named = bindings.filter((each) => each.source !== "").slice(0, 1000);
    const own = (row) => row.name !== "" && !row.name.startsWith("amq.");
    exchanges.sort((one, other) => own(other) - own(one));
    const path = (row) => "/bindings/" + [state.host, "e", row.source, row.destination_type[0], row.destination, row.properties_key].map(part).join("/");
    return [
      table(["Name", "Type", "Durable", "Do"], exchanges.map((row) => [
        long(row.name || "(default)"), row.type, row.durable ? "yes" : "no",
        own(row) ? button("Delete", "Delete " + row.name, () => ask("DELETE", "/exchanges/" + part(state.host) + "/" + part(row.name)),
          "Delete the exchange " + row.name + "?") : "always there",
      ])),
      make("h2", {}, "Who is routed where"),
      named.length === 0 ? make("p", {}, "Nothing is bound; each queue gets what names it on the default exchange.") : drawing(named.slice(0, DRAWN_MAX)),
      table(["From", "Key", "To", "Do"], named.map((row) => [long(row.source), long(row.routing_key), long(row.destination_type + " " + row.destination),
        button("Unbind", "Unbind " + row.destination + " from " + row.source + ", key " + row.routing_key, () => ask("DELETE", path(row)),
          "Take the binding of " + row.destination + " to " + row.source + " away?")])),
      make("h2", {}, "Declare an exchange"),
      form([["name", "Name", { required: true }], ["type", "Type", { choices: ["direct", "fanout", "topic", "headers"] }]], "Declare", async (values) => {
        await ask("PUT", "/exchanges/" + part(state.host) + "/" + part(values.name), { type: values.type, durable: true });
        await show(true);
        tell("Declared " + values.name);
      }),
      make("h2", {}, "Bind a queue"),
      form([["source", "Exchange", { required: true }], ["queue", "Queue", { required: true }], ["key", "Routing key"]], "Bind", async (values) => {
        await ask("POST", "/bindings/" + part(state.host) + "/e/" + part(values.source) + "/q/" + part(values.queue), { routing_key: values.key });
        await show(true);
        tell("Bound " + values.queue + " to " + values.source);
      }),
    ];
  },
  async Connections() {
    const told = await get("/connections?page=1&page_size=200&sort=name");
    const channels = await get("/channels?page=1&page_size=200&sort=name");
    const speed = (row, name) => (row[name + "_details"] === undefined ? "-" : octets(Math.round(row[name + "_details"].rate)) + "/s");
    return [make("p", {}, several(told.total_count, "connection")), table(["Name", "Called", "User", "Protocol", "State", "Channels", "From it", "To it", "Do"],
      told.items.map((row) => [
        long(row.name), long(row.user_provided_name || row.client_properties.product || "-"), long(row.user), row.protocol, row.state, row.channels,
        speed(row, "recv_oct"), speed(row, "send_oct"),
        button("Close", "Close " + row.name, () => ask("DELETE", "/connections/" + part(row.name)), "Close the connection " + row.name + "?")])),
    make("h2", {}, "Channels"), make("p", {}, several(channels.total_count, "channel")),
    table(["Name", "User", "Consumers", "Unacknowledged", "Prefetch"], channels.items.map((row) =>
      [long(row.name), long(row.user), row.consumer_count, row.messages_unacknowledged, row.prefetch_count]))];
  },
  async Bridges() {
    const status = await get("/leveret/status");
    const bridges = Object.entries(status.bridges);
    const full = (report) => report.backlog_octets_max ? report.backlog_octets / report.backlog_octets_max : 0;
    return [
      bridges.length === 0 ? make("p", {}, "No bridge has reported: [[bridge]] tables of the configuration file make them.")
        : table(["Bridge", "Direction", "State", "Other broker", "Waiting", "Room used", "Full in", "Oldest", "Per second", "Last error"],
          bridges.map(([name, report]) => [
            long(name), report.direction, long(report.state + (report.reason ? ": " + report.reason : "")), long(report.upstream), report.backlog || 0,
            make("meter", { min: 0, max: 1, high: 0.8, value: full(report), "aria-label": name + ": room used" }),
            report.full_in_s === null || report.full_in_s === undefined ? "does not grow" : span(report.full_in_s),
            report.oldest_age_s === null || report.oldest_age_s === undefined ? "-" : span(report.oldest_age_s),
            report.messages_per_second, long(report.last_error || "-")])),
      make("h2", {}, "Serial lines"),
      status.lines.length === 0 ? make("p", {}, "The broker listens on none.")
        : table(["Line", "State", "Frames sent", "Sent again", "Received", "Damaged", "Errors"], status.lines.map((row) => [
          long(row.line), row.trouble || (row.plugged_in ? row.open + " of " + row.links + " ends connected" : "unplugged"), row.sent, row.sent_again,
          row.received, row.damaged, (100 * (row.sent_again + row.damaged) / Math.max(1, row.sent + row.received)).toFixed(2) + " %"])),
    ];
  },
  async Limits() {
    const rows = (await get("/leveret/limits")).map((row) => {
      const share = row.used / row.max;
      const large = row.name.includes("size") || row.name.includes("memory");
      const words = LIMITS[row.name] || row.name;
      return [share, [(100 * share).toFixed(1) + " %", long(words, make("small", {}, row.name)),
        make("meter", { min: 0, max: 1, high: 0.8, value: share, "aria-label": words }),
        (large ? octets(row.used) : grouped(row.used)) + " of " + (large ? octets(row.max) : grouped(row.max))], words];
    });
    rows.sort((one, other) => other[0] - one[0]);
    return [make("p", {}, "Nearest to its end: " + rows[0][2] + ", " + rows[0][1][0] + ". What is full is refused, and said to who asked; [limits] of the configuration file sets each."),
      table(["Share", "Limit", "Full", "Used"], rows.map((each) => each[1]))];
  },
  async Log() {
    const status = await get("/leveret/status");
    const log = status.overview.log;
    const years = log === null ? null : log.life_years;
    return [
      log === null ? make("p", {}, "Messages are kept in memory only: leveret serve --data DIR keeps them.") : figures([
        ["On disk, of " + octets(log.size_max), octets(log.size)], ["Files", log.segments], ["Sync mode", log.sync], ["Syncs", log.syncs],
        ["Messages written", octets(log.message_octets)], ["The disk wrote", octets(log.medium_octets)],
        ["For an octet of a message", log.amplification === null ? "-" : log.amplification + " octets"],
        ["The flash lasts", years === null ? "not known yet" : years + " years"], ["Erased", log.erases], ["Trouble", log.trouble || "none"]]),
      make("h2", {}, "Said to the operator in the last hour"),
      status.alerts.length === 0 ? make("p", {}, "Nothing.")
        : table(["When", "What"], status.alerts.slice().reverse().map((row) => [new Date(row.at * 1000).toLocaleTimeString(), long(row.sentence)])),
    ];
  },
  async Users(state) {
    const users = await get("/users"), permissions = await get("/permissions"), policies = await get("/policies");
    const may = Object.fromEntries(permissions.map((row) => [row.user, row]));
    return [
      table(["Name", "Tags", "Configure", "Write", "Read", "Do"], users.map((row) => {
        const own = may[row.name] || { configure: "-", write: "-", read: "-" };
        return [long(row.name), long(row.tags.join(", ") || "none"), long(own.configure), long(own.write), long(own.read),
          button("Delete", "Delete " + row.name, () => ask("DELETE", "/users/" + part(row.name)), "Delete the user " + row.name + "?")];
      })),
      make("h2", {}, "Add a user, or change one"),
      form([["name", "User", { required: true }], ["password", "New password", { type: "password", autocomplete: "new-password", required: true }],
        ["tags", "Tag, for this page", { choices: ["", "management", "policymaker", "monitoring", "administrator"] }],
        ["configure", "May declare (expression)", { value: ".*" }], ["write", "May write to", { value: ".*" }], ["read", "May read from", { value: ".*" }]],
      "Save", async (values) => {
        await ask("PUT", "/users/" + part(values.name), { password: values.password, tags: values.tags });
        const { configure, write, read } = values;
        await ask("PUT", "/permissions/" + part(state.host) + "/" + part(values.name), { configure, write, read });
        await show(true);
        tell("Saved " + values.name);
      }),
      make("h2", {}, "Policies"),
      table(["Name", "Pattern", "For", "Definition", "Priority", "Do"],
        policies.map((row) => [long(row.name), long(row.pattern), row["apply-to"], long(JSON.stringify(row.definition)), row.priority,
          button("Delete", "Delete the policy " + row.name, () => ask("DELETE", "/policies/" + part(state.host) + "/" + part(row.name)),
            "Delete the policy " + row.name + "?")])),
      form([["policy", "Name", { required: true }], ["pattern", "Pattern of names", { required: true }],
        ["apply", "For", { choices: ["queues", "exchanges", "all"] }],
        ["key", "Setting", { choices: ["max-length", "max-length-bytes", "message-ttl", "expires", "dead-letter-exchange", "overflow", "delivery-limit"] }],
        ["value", "Value", { required: true }]], "Set policy", async (values) => {
        const definition = { [values.key]: /^[0-9]+$/.test(values.value) ? Number(values.value) : values.value };
        await ask("PUT", "/policies/" + part(state.host) + "/" + part(values.policy), { pattern: values.pattern, definition, "apply-to": values.apply });
        await show(true);
        tell("Set " + values.policy);
      }),
    ];
  },
};

// Exchanges on the left, what they lead to on the right; the table below it says the same in words.
function drawing(rows) {
  const from = [...new Set(rows.map((row) => row.source))], to = [...new Set(rows.map((row) => row.destination_type + " " + row.destination))];
  const height = 24 * Math.max(from.length, to.length) + 12;
  const width = Math.min(800, document.documentElement.clientWidth - 24), left = 0.34 * width, right = 0.58 * width; // texts keep their size on a phone
  const at = (place, count) => ((place + 0.5) * height) / count;
  const letters = Math.floor(left / 8);
  const words = (name, x, y, anchor) => make("text", { x, y: y + 4, "text-anchor": anchor },
    name.length > letters ? name.slice(0, letters - 1) + "…" : name, make("title", {}, name));
  return make("svg", { viewBox: "0 0 " + width + " " + height, class: "drawn", role: "img", "aria-label": "Exchanges, and the queues that they lead to" },
    ...rows.map((row) => make("line", { x1: left, y1: at(from.indexOf(row.source), from.length), x2: right,
      y2: at(to.indexOf(row.destination_type + " " + row.destination), to.length) }, make("title", {}, row.source + " → " + row.routing_key))),
    ...from.map((name, place) => words(name, left - 8, at(place, from.length), "end")),
    ...to.map((name, place) => words(name, right + 8, at(place, to.length), "start")));
}

async function look(row) {
  const told = await ask("POST", queuePath(row) + "/get", { count: 10, ackmode: "release", encoding: "auto", truncate: 2000 });
  state.looked = [make("h2", {}, "The first messages of " + row.name + " (they stay)"),
    ...(told.length ? told.map((each) => make("pre", {}, each.exchange + " " + each.routing_key + " " + JSON.stringify(each.properties) + "\n" + each.payload))
      : [make("p", {}, "It has none.")])];
}
