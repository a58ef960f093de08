// The port of the WebAssembly build, outside half: carries bytes between node's sockets and the endpoints inside (wasm_port.py).
//
// Laws: an endpoint is read into only where writable() has room, else its socket is paused; it is asked for no more output while its socket
// is full; end of file is told after the last octet; a closed endpoint's socket ends when its output is gone. Time comes in as ticks.

import { performance } from 'node:perf_hooks';
import { boundHeap, start } from './interpreter.mjs';

const COLUMNS = 5;             // as in wasm_port.py
const SLOT_COUNT = 8;
const TICK_MS = 20;
const TIME_MASK = 0x3fffffff;

const now = () => Math.floor(performance.now()) & TIME_MASK;

export class Carrier {
  /** Serve `module` (see wasm_port.py) inside a new interpreter. `heapKb` 0: not bounded. */
  static async create({ packageDirectory, stage, module, heapKb, line }) {
    const interpreter = await start({ packageDirectory, stage, line });
    const port = interpreter.micropython.pyimport('wasm_port');
    port.load(module);
    if (heapKb > 0) boundHeap(interpreter, heapKb);
    return new Carrier(interpreter, port);
  }

  constructor(interpreter, port) {
    this.memory = interpreter.memory;
    this.inside = Object.fromEntries(['open_slot', 'received', 'sent', 'release', 'tick', 'turn'].map((name) => [name, port[name]]));
    this.table = port.start();
    this.links = new Map();
    this.timer = setInterval(() => { this.inside.tick(now()); this.pump(); }, TICK_MS);
  }

  /** Give a connected socket an endpoint; false where none is to be had. `finished()` is called when the endpoint has been let go. */
  attach(socket, finished = () => {}) {
    const slot = this.inside.open_slot();
    if (slot < 0) return false;
    const link = { slot, socket, finished, input: [], ended: false, gone: false, told: false, full: false };
    this.links.set(slot, link);
    socket.setNoDelay(true);
    socket.on('data', (chunk) => { link.input.push(chunk); this.pump(); });
    socket.on('end', () => { link.ended = true; this.pump(); });
    socket.on('drain', () => { link.full = false; this.pump(); });
    socket.on('error', () => {});                       // 'close' follows, and says all that matters here
    socket.on('close', () => { link.gone = true; link.input.length = 0; this.pump(); });
    this.pump();
    return true;
  }

  stop() {
    clearInterval(this.timer);
    for (const link of this.links.values()) link.socket.destroy();
  }

  /** Move bytes until nothing moves any more. */
  pump() {
    let moved = true;
    while (moved) {
      moved = false;
      this.inside.turn(now());
      this.judge();
      for (const link of [...this.links.values()]) moved = this.serve(link) || moved;
    }
  }

  judge() {
    const [raised] = new Uint32Array(this.memory.buffer, this.table + 4 * COLUMNS * SLOT_COUNT, 1);
    if (raised) throw new Error('an endpoint has raised, which its contract forbids');
  }

  serve(link) {
    const [writableAddress, writableSize, pendingAddress, pendingSize, closed] = new Uint32Array(this.memory.buffer, this.table + 4 * COLUMNS * link.slot, COLUMNS);
    // Output first: the regions were looked up before this turn, and input may move the endpoint's buffers.
    if (pendingSize > 0 && !link.full && !link.gone) return this.send(link, pendingAddress, pendingSize);
    if (closed || (link.gone && link.told)) return this.finish(link, pendingSize);
    if (link.input.length > 0) return this.receive(link, writableAddress, writableSize);
    return this.end(link);
  }

  send(link, address, size) {
    link.full = !link.socket.write(Buffer.from(new Uint8Array(this.memory.buffer, address, size)));
    this.inside.sent(link.slot, size);
    return true;
  }

  receive(link, address, size) {
    if (size === 0) {
      link.socket.pause();
      return false;
    }
    const chunk = link.input.shift();
    const part = chunk.subarray(0, size);
    if (part.length < chunk.length) link.input.unshift(chunk.subarray(size));
    new Uint8Array(this.memory.buffer, address, part.length).set(part);
    this.inside.received(link.slot, part.length);
    if (link.input.length === 0) link.socket.resume();
    return true;
  }

  end(link) {
    if (link.told || !(link.ended || link.gone)) return false;
    link.told = true;
    this.inside.received(link.slot, 0);
    return true;
  }

  finish(link, pendingSize) {
    if (pendingSize > 0 && !link.gone) return false;
    this.inside.release(link.slot);
    this.links.delete(link.slot);
    if (!link.gone) link.socket.end();
    link.finished();
    return true;
  }
}
