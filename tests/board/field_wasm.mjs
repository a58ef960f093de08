// A board's firmware inside the WebAssembly build for the long run: node field_wasm.mjs PACKAGE_DIRECTORY STAGE HEAP_KB PORT
// Each call is one round of the gateway, because garbage is collected only between calls; there node carries octets between its sockets and
// those inside (wires/socket.py). The heap is bounded to HEAP_KB once the code is loaded: what the frozen code of the board leaves.
// A file that LEVERET_STOP names stops it as Ctrl-C does, once nobody is connected.

import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import { boundHeap, start } from '../micropython/interpreter.mjs';

const [packageDirectory, stage, heapKb, port] = process.argv.slice(2);
const TELL_MS = 3000, IDLE_MS = 5, COLLECT_EVERY = 16, FULL = 65536;
const PLACES = 10, COLUMNS = 5, ROOM = 2048;                 // as in wires/socket.py
const FREE = 0, WAITING = 1, ENDED = 3;
const STATE = 0, COME = 1, AT = 2, GOING = 3, GONE = 4;
const line = (text) => fs.writeSync(1, `${text}\n`);

const interpreter = await start({ packageDirectory, stage, line });
const { micropython, memory } = interpreter;
micropython.registerJsModule('_chance', { octet: () => crypto.randomInt(256) });
micropython.runPython('import os, _chance\nos.urandom = lambda size: bytes([_chance.octet() for _ in range(size)])');
const inside = micropython.pyimport('field_inside');
inside.load();
const addresses = [...inside.addresses()];
const links = new Array(PLACES).fill(null);

function attach(socket) {
  const place = links.indexOf(null);
  if (place < 0) return socket.destroy();
  const link = { socket, input: [], ended: false };
  links[place] = link;
  socket.setNoDelay(true);
  socket.on('data', (chunk) => { link.input.push(chunk); socket.pause(); });
  for (const event of ['end', 'close', 'error']) socket.on(event, () => { link.ended = true; });
  new Uint32Array(memory.buffer, addresses[0] + 4 * COLUMNS * place, COLUMNS).set([WAITING, 0, 0, 0, 0]);
}

/** Carry octets of one place: true when some moved. */
function carry(place) {
  const link = links[place];
  const row = new Uint32Array(memory.buffer, addresses[0] + 4 * COLUMNS * place, COLUMNS);
  let moved = false;
  if (row[GOING] > 0 && link.socket.writableLength < FULL) {
    if (!link.socket.destroyed) link.socket.write(Buffer.from(new Uint8Array(memory.buffer, addresses[1 + PLACES + place], row[GOING])));
    row[GOING] = 0;
    moved = true;
  }
  if (row[STATE] === ENDED && row[GOING] === 0) {
    link.socket.end();
    links[place] = null;
    row[STATE] = FREE;
    return true;
  }
  if (row[AT] === row[COME] && link.input.length > 0) {
    const chunk = link.input.shift(), part = chunk.subarray(0, ROOM);
    if (part.length < chunk.length) link.input.unshift(chunk.subarray(part.length));
    new Uint8Array(memory.buffer, addresses[1 + place], part.length).set(part);
    row[AT] = 0;
    row[COME] = part.length;
    if (link.input.length === 0) link.socket.resume();
    return true;
  }
  if (link.ended && link.input.length === 0) row[GONE] = 1;
  return moved;
}

const server = net.createServer({ allowHalfOpen: true }, attach);
await new Promise((listening) => { server.listen(Number(port), '127.0.0.1', listening); });
boundHeap(interpreter, Number(heapKb));
process.on('SIGTERM', () => process.exit(1));
inside.tell(0);
if (inside.begin() === 0) process.exit(1);

const { step, collect, tell } = inside;
let rounds = 0, toldAt = performance.now();
function round() {
  if (step() === 0) process.exit(1);
  rounds += 1;
  if (rounds % COLLECT_EVERY === 0) collect();
  let moved = false;
  for (let place = 0; place < PLACES; place++) if (links[place]) moved = carry(place) || moved;
  if (performance.now() - toldAt > TELL_MS) {
    collect();
    tell(rounds);
    toldAt = performance.now();
  }
  // To stop is one call, in which no garbage is collected: the connections, whose clients have gone, go before.
  if (links.every((link) => link === null) && fs.existsSync(process.env.LEVERET_STOP)) {
    inside.stop();
    process.exit(0);
  }
  if (moved) setImmediate(round); else setTimeout(round, IDLE_MS);
}
round();
