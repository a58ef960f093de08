// Runs a blocking client alone inside the WebAssembly build, in a heap of so many KiB, its code with it:
//   node client_alone.mjs PACKAGE_DIRECTORY STAGE HEAP_KB PORT MESSAGES MODULE...
// The modules are imported one by one, then `ten_lines.start()` is called once and `ten_lines.again()` MESSAGES times: garbage is collected
// between calls only. Its `socket` (client_alone_socket.py) reads and writes here, and waits: the connection is another thread's.

import fs from 'node:fs';
import { Worker } from 'node:worker_threads';
import { boundHeap, start } from './interpreter.mjs';

const RING = 65536;
const [packageDirectory, stage, heapKb, port, messages, ...modules] = process.argv.slice(2);
const line = (text) => fs.writeSync(1, `${text}\n`);

const shared = new SharedArrayBuffer(16 + RING);
const state = new Int32Array(shared, 0, 4);           // octets that came, octets that were read, 1: connected, 2: over
const ring = new Uint8Array(shared, 16);
const other = new Worker(`
  const { parentPort, workerData } = require('node:worker_threads');
  const state = new Int32Array(workerData.shared, 0, 4), ring = new Uint8Array(workerData.shared, 16);
  const say = (at, number) => { Atomics.store(state, at, number); Atomics.notify(state, 0); };
  const socket = require('node:net').connect({ host: '127.0.0.1', port: workerData.port, noDelay: true });
  const over = () => { Atomics.store(state, 2, 2); Atomics.add(state, 3, 1); Atomics.notify(state, 0); };
  socket.on('error', over).on('close', over);
  socket.on('data', (chunk) => {
    const at = Atomics.load(state, 0);
    if (at + chunk.length - Atomics.load(state, 1) > ring.length) throw new Error('the client does not read');
    for (let index = 0; index < chunk.length; index += 1) ring[(at + index) % ring.length] = chunk[index];
    Atomics.add(state, 0, chunk.length);
    Atomics.notify(state, 0);
  });
  parentPort.on('message', (octets) => { if (octets === null) socket.destroy(); else socket.write(octets); });
`, { eval: true, workerData: { shared, port: Number(port) } });

const interpreter = await start({ packageDirectory, stage, line });
const waiting = () => Atomics.load(state, 0) - Atomics.load(state, 1);
globalThis.leveret_wire = {
  write(address, size) { other.postMessage(Buffer.from(new Uint8Array(interpreter.memory.buffer, address, size))); },
  read(address, size) {
    const at = Atomics.load(state, 1);
    const count = Math.min(size, waiting());
    const target = new Uint8Array(interpreter.memory.buffer, address, count);
    for (let index = 0; index < count; index += 1) target[index] = ring[(at + index) % RING];
    Atomics.add(state, 1, count);
    return count;
  },
  wait(milliseconds) {                                // 1: there is something to read, or the connection is over
    const end = Date.now() + milliseconds;
    while (waiting() === 0 && Atomics.load(state, 2) !== 2 && Date.now() < end) {
      Atomics.wait(state, 0, Atomics.load(state, 0), end - Date.now());
    }
    return waiting() > 0 || Atomics.load(state, 2) === 2 ? 1 : 0;
  },
};
const runner = interpreter.micropython.pyimport('client_alone_inside');
boundHeap(interpreter, Number(heapKb));
try {
  for (const module of modules) runner.load(module);
  runner.begin();
  for (let number = 0; number < Number(messages); number += 1) runner.again();
  runner.tell();
} catch (error) {
  line(error.message);
  process.kill(process.pid, 'SIGKILL');               // an exit waits for the other thread, for ever at times
}
other.postMessage(null);
process.exit(0);
