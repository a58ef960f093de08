// The views of the page: a function each, which asks the API and returns what stands below the view's name. What they are made of: page.js.
"use strict";

const PAGE_SIZE = 50;
const DRAWN_MAX = 100; // bindings in the drawing

const VIEWS = {
  async Overview() {
    const told = await get("/overview?lengths_age=600&lengths_incr=5&msg_rates_age=600&msg_rates_incr=5");
    const stats = told.message_stats, queues = told.queue_totals;
    const rate = (name) => stats[name + "_details"].rate.toFixed(1) + "/s";
    return [
      figures([["Messages ready", queues.messages_ready], ["Unacknowledged", queues.messages_unacknowledged], ["Published", rate("publish")],
        ["Delivered", rate("deliver_get")], ["Acknowledged", rate("ack")], ...Object.entries(told.object_totals)]),
      chart("Messages in all queues", queues.messages_details.samples || []),
      chart("Messages published since the start", stats.publish_details.samples || []),
    ];
  },
  async Queues(state) {
    const path = "/queues?page=" + state.page + "&page_size=" + PAGE_SIZE + "&use_regex=false&name=" + part(state.name) +
      "&columns=name,vhost,type,state,policy,messages_ready,messages_unacknowledged,consumers,message_stats.publish_details.rate";
    const told = await get(path);
    const rows = told.items.map((row) => [
      row.name, row.type, row.state, row.policy || "", row.messages_ready, row.messages_unacknowledged, row.consumers,
      Number(row.message_stats.publish_details.rate.toFixed(1)),
      make("span", {},
        button("Look", "Look into " + row.name, async () => look(row)),
        button("Purge", "Purge " + row.name, () => ask("DELETE", queuePath(row) + "/contents"), "Drop all ready messages of " + row.name + "?"),
        button("Delete", "Delete " + row.name, () => ask("DELETE", queuePath(row)), "Delete the queue " + row.name + " with its messages?")),
    ]);
    return [
      form([["name", "Names with", { value: state.name }]], "Show", async (values) => { state.name = values.name; state.page = 1; await show(); }),
      make("p", {}, told.filtered_count + " queues, page " + told.page + " of " + told.page_count + " ",
        ...(told.page > 1 ? [make("button", { type: "button", onclick: () => { state.page -= 1; show(); } }, "Back")] : []),
        ...(told.page < told.page_count ? [make("button", { type: "button", onclick: () => { state.page += 1; show(); } }, "Further")] : [])),
      table(["Name", "Type", "State", "Policy", "Ready", "Unacknowledged", "Consumers", "In a second", "Do"], rows),
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
      form([["exchange", "Exchange (empty: the default one)"], ["key", "Routing key"], ["body", "Body"]], "Publish", async (values) => {
        const told = await ask("POST", "/exchanges/" + part(state.host) + "/" + part(values.exchange || "amq.default") + "/publish",
          { properties: { delivery_mode: 2 }, routing_key: values.key, payload: values.body, payload_encoding: "string" });
        tell(told.routed ? "Published" : "Published, and no queue gets it");
      }),
    ];
  },
  async Exchanges(state) {
    const exchanges = await get("/exchanges?columns=name,type,durable,user_who_performed_action");
    const bindings = await get("/bindings?columns=source,destination,destination_type,routing_key");
    const named = bindings.filter((each) => each.source !== "").slice(0, 1000);
    const own = (name) => name === "" || name.startsWith("amq.");
    return [
      table(["Name", "Type", "Durable", "Do"], exchanges.map((row) => [
        row.name || "(default)", row.type, row.durable ? "yes" : "no",
        own(row.name) ? "" : button("Delete", "Delete " + row.name, () => ask("DELETE", "/exchanges/" + part(state.host) + "/" + part(row.name)),
          "Delete the exchange " + row.name + "?"),
      ])),
      make("h2", {}, "Who is routed where"),
      named.length === 0 ? make("p", {}, "Nothing is bound; each queue gets what names it on the default exchange.") : drawing(named.slice(0, DRAWN_MAX)),
      table(["From", "Key", "To"], named.map((row) => [row.source, row.routing_key, row.destination_type + " " + row.destination])),
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
    return [make("p", {}, told.total_count + " connections"), table(["Name", "User", "Protocol", "State", "Channels", "Do"], told.items.map((row) => [
      row.name, row.user, row.protocol, row.state, row.channels,
      button("Close", "Close " + row.name, () => ask("DELETE", "/connections/" + part(row.name)), "Close the connection " + row.name + "?")])),
    make("h2", {}, "Channels"), make("p", {}, channels.total_count + " channels"),
    table(["Name", "User", "Consumers", "Unacknowledged", "Prefetch"], channels.items.map((row) =>
      [row.name, row.user, row.consumer_count, row.messages_unacknowledged, row.prefetch_count]))];
  },
  async Bridges() {
    const status = await get("/leveret/status");
    const bridges = Object.entries(status.bridges);
    const full = (report) => report.backlog_octets_max ? report.backlog_octets / report.backlog_octets_max : 0;
    return [
      bridges.length === 0 ? make("p", {}, "No bridge has reported: [[bridge]] tables of the configuration file make them.")
        : table(["Bridge", "Direction", "State", "Other broker", "Waiting", "Room used", "Full in", "Oldest", "In a second", "Last error"],
          bridges.map(([name, report]) => [
            name, report.direction, report.state + (report.reason ? ": " + report.reason : ""), report.upstream, report.backlog || 0,
            make("meter", { min: 0, max: 1, high: 0.8, value: full(report), "aria-label": name + ": room used" }),
            report.full_in_s === null || report.full_in_s === undefined ? "does not grow" : span(report.full_in_s),
            report.oldest_age_s === null || report.oldest_age_s === undefined ? "-" : span(report.oldest_age_s),
            report.messages_per_second, report.last_error || "-"])),
      make("h2", {}, "Serial lines"),
      status.lines.length === 0 ? make("p", {}, "The broker listens on none.")
        : table(["Line", "State", "Frames sent", "Sent again", "Received", "Damaged", "Errors"], status.lines.map((row) => [
          row.line, row.trouble || (row.plugged_in ? row.open + " of " + row.links + " ends connected" : "unplugged"), row.sent, row.sent_again,
          row.received, row.damaged, (100 * (row.sent_again + row.damaged) / Math.max(1, row.sent + row.received)).toFixed(2) + " %"])),
    ];
  },
  async Limits() {
    const rows = (await get("/leveret/limits")).map((row) => {
      const share = row.used / row.max;
      const large = row.name.includes("size") || row.name.includes("memory");
      return [share, [row.name, make("meter", { min: 0, max: 1, high: 0.8, value: share, "aria-label": row.name }),
        (large ? octets(row.used) : row.used) + " of " + (large ? octets(row.max) : row.max), (100 * share).toFixed(1) + " %"]];
    });
    rows.sort((one, other) => other[0] - one[0]);
    return [make("p", {}, "How full each limit is; the fullest refuses first."), table(["Limit", "Full", "Used", "Share"], rows.map((each) => each[1]))];
  },
  async Log() {
    const status = await get("/leveret/status");
    const log = status.overview.log;
    const years = log === null ? null : log.life_years;
    return [
      log === null ? make("p", {}, "Messages are kept in memory only: leveret serve --data DIR keeps them.") : figures([
        ["On disk", octets(log.size) + " of " + octets(log.size_max)], ["Files", log.segments], ["Synced", log.sync], ["Syncs", log.syncs],
        ["Messages written", octets(log.message_octets)], ["The disk wrote", octets(log.medium_octets)],
        ["Written for each octet of a message", log.amplification === null ? "-" : log.amplification],
        ["The flash lasts", years === null ? "not known" : years + " years"], ["Erased", log.erases], ["Trouble", log.trouble || "none"]]),
      make("h2", {}, "Said to the operator in the last hour"),
      status.alerts.length === 0 ? make("p", {}, "Nothing.")
        : table(["When", "What"], status.alerts.slice().reverse().map((row) => [new Date(row.at * 1000).toLocaleTimeString(), row.sentence])),
    ];
  },
  async Users(state) {
    const users = await get("/users"), permissions = await get("/permissions"), policies = await get("/policies");
    const may = Object.fromEntries(permissions.map((row) => [row.user, row]));
    return [
      table(["Name", "Tags", "Configure", "Write", "Read", "Do"], users.map((row) => {
        const own = may[row.name] || { configure: "-", write: "-", read: "-" };
        return [row.name, row.tags.join(", "), own.configure, own.write, own.read,
          button("Delete", "Delete " + row.name, () => ask("DELETE", "/users/" + part(row.name)), "Delete the user " + row.name + "?")];
      })),
      make("h2", {}, "Add a user, or change one"),
      form([["name", "User", { required: true }], ["password", "New password", { type: "password", autocomplete: "new-password", required: true }],
        ["tags", "Tags", { choices: ["", "management", "policymaker", "monitoring", "administrator"] }],
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
        policies.map((row) => [row.name, row.pattern, row["apply-to"], JSON.stringify(row.definition), row.priority,
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
  const at = (place, count) => ((place + 0.5) * height) / count;
  const words = (name, x, y, anchor) => make("text", { x, y: y + 4, "text-anchor": anchor },
    name.length > 34 ? name.slice(0, 33) + "…" : name, make("title", {}, name));
  return make("svg", { viewBox: "0 0 800 " + height, class: "drawn", role: "img", "aria-label": "Exchanges, and the queues that they lead to" },
    ...rows.map((row) => make("line", { x1: 270, y1: at(from.indexOf(row.source), from.length), x2: 530,
      y2: at(to.indexOf(row.destination_type + " " + row.destination), to.length) }, make("title", {}, row.source + " → " + row.routing_key))),
    ...from.map((name, place) => words(name, 262, at(place, from.length), "end")),
    ...to.map((name, place) => words(name, 538, at(place, to.length), "start")));
}

async function look(row) {
  const told = await ask("POST", queuePath(row) + "/get", { count: 10, ackmode: "release", encoding: "auto", truncate: 2000 });
  state.looked = [make("h2", {}, "The first messages of " + row.name + " (they stay)"),
    ...(told.length ? told.map((each) => make("pre", {}, each.exchange + " " + each.routing_key + " " + JSON.stringify(each.properties) + "\n" + each.payload))
      : [make("p", {}, "It has none.")])];
}
