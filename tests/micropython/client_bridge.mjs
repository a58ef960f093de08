// Connects an endpoint inside the WebAssembly build to a broker outside:
//   node client_bridge.mjs PACKAGE_DIRECTORY STAGE MODULE HEAP_KB PORT CONNECTIONS
// MODULE is what wasm_port.py serves (wasm_client); it gets CONNECTIONS connections to 127.0.0.1:PORT, each when the one before is over.

import fs from 'node:fs';
import net from 'node:net';
import { Carrier } from './carrier.mjs';

const [packageDirectory, stage, module, heapKb, port, connections] = process.argv.slice(2);
const line = (text) => fs.writeSync(1, `${text}\n`);

const carrier = await Carrier.create({ packageDirectory, stage, module, heapKb: Number(heapKb), line });

function connect() {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port: Number(port), allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => { if (!carrier.attach(socket, resolve)) reject(new Error('the module refuses the connection')); });
  });
}

for (let number = 0; number < Number(connections); number += 1) await connect();
carrier.stop();
