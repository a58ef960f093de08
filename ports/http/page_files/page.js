// The page of Leveret. Every text of the broker's goes in as text (textContent), never as markup. The log-in stays in this tab: it goes out with
// each request in a header that only this script sets, so no other site can act with it.
"use strict";

const EVERY_MS = 5000;
const PAGE_SIZE = 50;
let header = sessionStorage.getItem("header");
let timer = null;
let shown = 0; // counts views that were begun: what an older one gets late is dropped

function make(tag, given = {}, ...inside) {
  const made = tag === "svg" || tag === "polyline" ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside.map((each) => (each instanceof Node ? each : String(each))));
  return made;
}

function tell(sentence, bad = false) {
  const place = document.getElementById("told");
  place.textContent = sentence;
  place.className = bad ? "bad" : "";
}

async function ask(method, path, body) {
  const answer = await fetch("/api" + path, {
    method,
    credentials: "omit",
    headers: { authorization: header, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  let json = null;
  try { json = text ? JSON.parse(text) : null; } catch { json = null; }
  if (!answer.ok) {
    const error = new Error((json && json.reason && String(json.reason)) || answer.status + " " + answer.statusText);
    error.status = answer.status;
    throw error;
  }
  return json;
}

const get = (path) => ask("GET", path);
const part = encodeURIComponent;
const queuePath = (row) => "/queues/" + part(row.vhost) + "/" + part(row.name);

function octets(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (count >= 1024 && at < units.length - 1) { count /= 1024; at += 1; }
  return (at ? count.toFixed(1) : count) + " " + units[at];
}

function table(heads, rows) {
  const cell = (tag, each) =>
    each instanceof Node ? make(tag, {}, each) : make(tag, { class: typeof each === "number" ? "number" : "name" }, each);
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" },
    make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((each) => make("th", { scope: "col" }, each)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((each) => cell("td", each)))))));
}

function figures(pairs) {
  return make("dl", {}, ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function chart(words, samples) {
  const points = samples.slice().reverse();
  const most = Math.max(1, ...points.map((each) => each.sample));
  const line = points.map((each, at) => (at * 300) / Math.max(1, points.length - 1) + "," + (58 - (each.sample * 56) / most)).join(" ");
  return make("section", {}, make("h2", {}, words + ": at most " + most),
    make("svg", { viewBox: "0 0 300 60", preserveAspectRatio: "none", role: "img", "aria-label": words }, make("polyline", { points: line })));
}

function button(words, label, action, sure) {
  return make("button", { type: "button", "aria-label": label, onclick: async () => {
    if (sure && !window.confirm(sure)) return;
    try { await action(); tell(label + ": done"); await show(true); } catch (error) { tell(label + ": " + error.message, true); }
  } }, words);
}

function form(fields, words, action) {
  const inputs = fields.map(([name, label, given = {}]) => [name, make("label", {}, label,
    given.choices ? make("select", { name }, ...given.choices.map((each) => make("option", {}, each))) : make("input", { name, autocomplete: "off", ...given }))]);
  return make("form", { onsubmit: async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    try { await action(values); } catch (error) { tell(words + ": " + error.message, true); }
  } }, ...inputs.map((each) => each[1]), make("button", {}, words));
}

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
        tell("Declared " + values.name);
        await show(true);
      }),
      make("h2", {}, "Publish"),
      form([["exchange", "Exchange (empty: the default one)"], ["key", "Routing key"], ["body", "Body"]], "Publish", async (values) => {
        const told = await ask("POST", "/exchanges/" + part(state.host) + "/" + part(values.exchange || "amq.default") + "/publish",
          { properties: { delivery_mode: 2 }, routing_key: values.key, payload: values.body, payload_encoding: "string" });
        tell(told.routed ? "Published" : "Published, and no queue gets it");
      }),
    ];
  },
  async Exchanges() {
    const exchanges = await get("/exchanges?columns=name,type,durable");
    const bindings = await get("/bindings?columns=source,destination,destination_type,routing_key");
    const named = bindings.filter((each) => each.source !== "").slice(0, 1000);
    return [
      make("h2", {}, "Exchanges"),
      table(["Name", "Type", "Durable"], exchanges.map((row) => [row.name || "(default)", row.type, row.durable ? "yes" : "no"])),
      make("h2", {}, "Who is routed where"),
      table(["From", "Key", "To"], named.map((row) => [row.source, row.routing_key, "→ " + row.destination_type + " " + row.destination])),
    ];
  },
  async Connections() {
    const told = await get("/connections?page=1&page_size=200&sort=name");
    return [make("p", {}, told.total_count + " connections"), table(["Name", "User", "Protocol", "State", "Channels", "Do"], told.items.map((row) => [
      row.name, row.user, row.protocol, row.state, row.channels,
      button("Close", "Close " + row.name, () => ask("DELETE", "/connections/" + part(row.name)), "Close the connection " + row.name + "?")]))];
  },
  async Limits() {
    const told = await get("/leveret/limits");
    const status = await get("/leveret/status");
    const log = status.overview.log;
    const rows = told.map((row) => {
      const share = row.used / row.max;
      const large = row.name.includes("size") || row.name.includes("memory");
      return [row.name, make("meter", { min: 0, max: 1, high: 0.8, value: share, "aria-label": row.name }),
        (large ? octets(row.used) : row.used) + " of " + (large ? octets(row.max) : row.max), (100 * share).toFixed(1) + " %"];
    });
    return [
      make("h2", {}, "How full each limit is; the fullest refuses first"),
      table(["Limit", "Full", "Used", "Share"], rows),
      make("h2", {}, "Log"),
      log === null ? make("p", {}, "Messages are kept in memory only.") : figures(Object.entries(log).map(([name, value]) => [name, value === null ? "-" : value])),
      make("h2", {}, "Bridges"),
      Object.keys(status.bridges).length === 0 ? make("p", {}, "There are none.")
        : table(["Bridge", "Report"], Object.entries(status.bridges).map(([name, report]) => [name, JSON.stringify(report)])),
      make("h2", {}, "Said to the operator in the last hour"),
      table(["When", "What"], status.alerts.slice().reverse().map((row) => [new Date(row.at * 1000).toLocaleTimeString(), row.sentence])),
    ];
  },
  async Users() {
    const users = await get("/users"), permissions = await get("/permissions"), policies = await get("/policies");
    const may = Object.fromEntries(permissions.map((row) => [row.user, row]));
    return [
      make("h2", {}, "Users"),
      table(["Name", "Tags", "Configure", "Write", "Read"], users.map((row) => {
        const own = may[row.name] || { configure: "-", write: "-", read: "-" };
        return [row.name, row.tags.join(", "), own.configure, own.write, own.read];
      })),
      make("h2", {}, "Policies"),
      table(["Name", "Pattern", "For", "Definition", "Priority"],
        policies.map((row) => [row.name, row.pattern, row["apply-to"], JSON.stringify(row.definition), row.priority])),
    ];
  },
};

async function look(row) {
  const told = await ask("POST", queuePath(row) + "/get", { count: 10, ackmode: "release", encoding: "auto", truncate: 2000 });
  state.looked = [make("h2", {}, "The first messages of " + row.name + " (they stay)"),
    ...(told.length ? told.map((each) => make("pre", {}, each.exchange + " " + each.routing_key + " " + JSON.stringify(each.properties) + "\n" + each.payload))
      : [make("p", {}, "It has none.")])];
}

const state = { host: "/", view: "Overview", page: 1, name: "", looked: [] };

function logIn() {
  clearTimeout(timer);
  document.getElementById("views").hidden = true;
  document.getElementById("who").textContent = "";
  document.getElementById("main").replaceChildren(make("h2", {}, "Log in"),
    form([["name", "Name", { required: true, autocomplete: "username" }], ["password", "Password", { type: "password", autocomplete: "current-password" }]],
      "Log in", async (values) => {
        const octetsOf = new TextEncoder().encode(values.name + ":" + values.password);
        header = "Basic " + btoa(String.fromCharCode(...octetsOf));
        await begin();
      }));
}

async function begin() {
  let who;
  try {
    who = await get("/whoami");
    for (const each of await get("/vhosts")) state.host = each.name;
  } catch (error) { header = null; sessionStorage.removeItem("header"); logIn(); tell(error.message, true); return; }
  sessionStorage.setItem("header", header);
  tell("");
  document.getElementById("who").replaceChildren(who.name + " ",
    make("button", { type: "button", onclick: () => { header = null; sessionStorage.removeItem("header"); logIn(); } }, "Log out"));
  const views = document.getElementById("views");
  views.hidden = false;
  await show();
}

async function show(keeps = false) {
  clearTimeout(timer);
  shown += 1;
  const own = shown;
  const name = decodeURIComponent(location.hash.slice(1));
  if (Object.hasOwn(VIEWS, name) && name !== state.view) Object.assign(state, { view: name, page: 1, name: "", looked: [] });
  document.getElementById("views").replaceChildren(...Object.keys(VIEWS).map((each) =>
    make("a", { href: "#" + each, "aria-current": each === state.view ? "page" : false }, each)));
  try {
    const parts = await VIEWS[state.view](state);
    if (own !== shown) return;
    const main = document.getElementById("main");
    main.replaceChildren(make("h2", {}, state.view), ...parts);
    const place = document.getElementById("looked");
    if (place && keeps) place.replaceChildren(...state.looked);
  } catch (error) {
    if (error.status === 401 && /log/i.test(error.message)) { logIn(); }
    tell(error.message, true);
  }
  const typing = () => ["INPUT", "SELECT", "TEXTAREA", "BUTTON"].includes(document.activeElement && document.activeElement.tagName);
  if (own === shown) timer = setTimeout(() => (typing() || document.hidden ? (timer = setTimeout(() => show(true), EVERY_MS)) : show(true)), EVERY_MS);
}

window.addEventListener("hashchange", () => { if (header) show(); });
if (header) begin(); else logIn();
