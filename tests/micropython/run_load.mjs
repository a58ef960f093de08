// A board's load inside the WebAssembly build, its heap bounded: node run_load.mjs PACKAGE_DIRECTORY STAGE HEAP_KB MESSAGES
// Each call does one round and goes back, because the build collects garbage only between calls. Prints what load_inside.py tells, as JSON.

import fs from 'node:fs';
import { boundHeap, start } from './interpreter.mjs';

const [packageDirectory, stage, heapKb, messages] = process.argv.slice(2);
const line = (text) => fs.writeSync(1, `${text}\n`);

const interpreter = await start({ packageDirectory, stage, line });
const inside = interpreter.micropython.pyimport('load_inside');
boundHeap(interpreter, Number(heapKb));
inside.begin();
while (inside.prepare() !== 0);
const step = inside.step;
const began = performance.now();
while (inside.done() < Number(messages)) if (step() !== 0) break;
line(`SECONDS ${(performance.now() - began) / 1000}`);
inside.tell();
