// A TCP server whose every connection is served inside the WebAssembly build: node broker_bridge.mjs PACKAGE_DIRECTORY STAGE MODULE HEAP_KB
// Prints `ready amqp://127.0.0.1:PORT` when it listens; SIGTERM ends it. MODULE is what wasm_port.py serves (wasm_broker, wasm_echo).

import fs from 'node:fs';
import net from 'node:net';
import { Carrier } from './carrier.mjs';

const [packageDirectory, stage, module, heapKb] = process.argv.slice(2);
const line = (text) => fs.writeSync(2, `${text}\n`);

const carrier = await Carrier.create({ packageDirectory, stage, module, heapKb: Number(heapKb), line });
// Half-open: an endpoint may still have an answer to send after its peer has ended.
const server = net.createServer({ allowHalfOpen: true }, (socket) => { if (!carrier.attach(socket)) socket.destroy(); });
server.listen(0, '127.0.0.1', () => fs.writeSync(1, `ready amqp://127.0.0.1:${server.address().port}\n`));
process.on('SIGTERM', () => { server.close(); carrier.stop(); });
