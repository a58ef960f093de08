// Gives the bridge inside the WebAssembly build its connections upstream: node uplink_bridge.mjs PACKAGE_DIRECTORY STAGE MODULE HEAP_KB PORT
// MODULE (wasm_uplink) prints "dial" for each connection that it wants, to 127.0.0.1:PORT, and a line of JSON at the end.

import fs from 'node:fs';
import net from 'node:net';
import { Carrier } from './carrier.mjs';

const [packageDirectory, stage, module, heapKb, port] = process.argv.slice(2);
let carrier = null;
let early = false;              // it dialled before there was a carrier

function connect() {
  if (carrier === null) { early = true; return; }
  const socket = net.connect({ host: '127.0.0.1', port: Number(port), allowHalfOpen: true });
  socket.on('error', () => {});         // nobody there: the bridge gives the attempt up when its time is over
  socket.once('connect', () => { if (!carrier.attach(socket)) socket.destroy(); });
}

function line(text) {
  if (text === 'dial') { setImmediate(connect); return; }
  fs.writeSync(1, `${text}\n`);
  if (text.startsWith('{')) setImmediate(() => process.exit(0));
}

carrier = await Carrier.create({ packageDirectory, stage, module, heapKb: Number(heapKb), line });
if (early) connect();
