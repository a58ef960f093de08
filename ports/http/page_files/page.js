// The page of Leveret: what its views (views.js) are made of, the log-in, and the going from view to view. Every text of the broker's goes in as text (textContent), never as markup. The password goes out once;
// what stands for it since then is a cookie that no script reads and that goes out with requests of this page alone (SameSite).
"use strict";

const EVERY_MS = 5000;
const DRAWN = ["svg", "polyline", "line", "text", "title", "g"];
let loggedIn = false;
let timer = null;
let shown = 0; // counts views that were begun: what an older one gets late is dropped

function make(tag, given = {}, ...inside) {
  const made = DRAWN.includes(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
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

async function ask(method, path, body, more = {}) {
  const answer = await fetch("/api" + path, {
    method,
    headers: { "x-leveret-page": "1", ...more, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  let json = null;
  try { json = text ? JSON.parse(text) : null; } catch { json = null; }
  if (!answer.ok) {
    const error = new Error((json && json.reason && String(json.reason)) || answer.status + " " + answer.statusText);
    Object.assign(error, { status: answer.status, json });
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

function span(seconds) {
  for (const [name, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (seconds >= size) return (seconds / size).toFixed(1) + " " + name;
  return Math.round(seconds) + " s";
}

const grouped = (count) => count.toLocaleString("en");

// A cell is a number, a short text, or a node; a text of somebody's choice is wrapped in `long`.
const long = (...words) => Object.assign(make("span", {}, ...words), { isLong: true });
const several = (count, name) => grouped(count) + " " + name + (count === 1 ? "" : "s");

function table(heads, rows) {
  if (rows.length === 0) return make("p", {}, "None.");
  const kind = (each) => (typeof each === "number" ? "number" : each.isLong ? "text" : false);
  const cell = (each) => make("td", { class: kind(each) }, typeof each === "number" ? grouped(each) : each);
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table: " + heads.join(", ") },
    make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((each, at) => make("th", { scope: "col", class: kind(rows[0][at]) }, each)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell))))));
}

function figures(pairs) {
  return make("dl", {}, ...pairs.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, typeof value === "number" ? grouped(value) : value))));
}

// A line for each of `series`: [words, samples as the API has them, the newest first]; `unit` stands behind its figures.
function chart(title, series, unit = "") {
  const lines = series.map(([words, samples]) => [words, samples.slice().reverse()]);
  const most = Math.max(1, ...lines.flatMap(([, points]) => points.map((each) => each.sample)));
  const [, longest] = lines[0];
  const size = Math.max(1, ...lines.map(([, points]) => points.length - 1));
  const place = (each, at, points) => ((at + size - points.length + 1) * 300) / size + "," + (58 - (each.sample * 54) / most);
  const shown = (value) => (value < 100 ? Number(value.toFixed(1)) : Math.round(value)).toLocaleString("en") + unit;
  return make("figure", {}, make("h2", {}, title),
    make("figcaption", {}, ...lines.map(([words, points], at) =>
      make("span", { class: ["first", "second", "third"][at] }, words + (points.length ? ": " + shown(points[points.length - 1].sample) + " now" : ""))),
    make("span", {}, "top: " + shown(most))),
    make("svg", { viewBox: "0 0 300 60", preserveAspectRatio: "none", role: "img", "aria-label": title },
      ...lines.map(([, points], at) => make("polyline", { class: ["first", "second", "third"][at], points: points.map(place).join(" ") }))),
    longest.length > 1 ? make("p", { class: "span" },
      make("span", {}, span((longest[longest.length - 1].timestamp - longest[0].timestamp) / 1000) + " ago"), make("span", {}, "now")) : make("p", {}, "Figures come every 5 seconds."));
}

// How fast a count has grown between its samples.
function speeds(samples) {
  return samples.slice(0, -1).map((each, at) => {
    const before = samples[at + 1];
    return { timestamp: each.timestamp, sample: Math.max(0, (1000 * (each.sample - before.sample)) / Math.max(1, each.timestamp - before.timestamp)) };
  });
}

function button(words, label, action, sure) {
  return make("button", { type: "button", "aria-label": label, onclick: async () => {
    if (sure && !window.confirm(sure)) return;
    try { await action(); await show(true); tell(label + ": done"); } catch (error) { tell(label + ": " + error.message, true); }
  } }, words);
}

function form(fields, words, action) {
  const inputs = fields.map(([name, label, given = {}]) => [name, make("label", {}, label,
    given.choices ? make("select", { name }, ...given.choices.map((each) => make("option", { value: each }, each || "none")))
      : given.lines ? make("textarea", { name }) : make("input", { name, autocomplete: "off", ...given }))]);
  return make("form", { onsubmit: async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    try { await action(values); } catch (error) { tell(words + ": " + error.message, true); }
  } }, ...inputs.map((each) => each[1]), make("button", {}, words));
}

const state = { host: "/", view: "Overview", page: 1, name: "", looked: [] };

function logIn() {
  clearTimeout(timer);
  loggedIn = false;
  shown += 1;
  document.getElementById("views").hidden = true;
  document.getElementById("who").textContent = "";
  document.getElementById("main").replaceChildren(make("h2", {}, "Log in"),
    form([["name", "Name", { required: true, autocomplete: "username" }], ["password", "Password", { type: "password", autocomplete: "current-password" }]],
      "Log in", async (values) => {
        const octetsOf = new TextEncoder().encode(values.name + ":" + values.password);
        await ask("POST", "/login", undefined, { authorization: "Basic " + btoa(String.fromCharCode(...octetsOf)) });
        await begin();
      }));
}

async function begin() {
  let who;
  try {
    who = await get("/whoami");
    for (const each of await get("/vhosts")) state.host = each.name;
  } catch (error) { logIn(); if (error.json || error.status !== 401) tell(error.message, true); return; }
  tell("");
  loggedIn = true;
  document.getElementById("who").replaceChildren(who.name + " ",
    make("button", { type: "button", onclick: async () => { await ask("DELETE", "/login").catch(() => null); logIn(); } }, "Log out"));
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
    document.title = state.view + " - Leveret";
    document.getElementById("main").replaceChildren(make("h2", {}, state.view), ...parts);
    const place = document.getElementById("looked");
    if (place && keeps) place.replaceChildren(...state.looked);
  } catch (error) {
    if (own !== shown) return;
    if (error.status === 401 && !/not /i.test(error.message)) { logIn(); tell("The log-in has ended", true); return; }
    tell(error.message, true);
  }
  const typing = () => ["INPUT", "SELECT", "TEXTAREA", "BUTTON"].includes(document.activeElement && document.activeElement.tagName);
  if (own === shown) timer = setTimeout(() => (typing() || document.hidden ? (timer = setTimeout(() => show(true), EVERY_MS)) : show(true)), EVERY_MS);
}

window.addEventListener("hashchange", () => { if (loggedIn) show(); });
document.addEventListener("DOMContentLoaded", begin);
