// Runs the tests of one file inside the WebAssembly build: node run_tests.mjs PACKAGE_DIRECTORY STAGE TEST_DIRECTORY TEST_MODULE HEAP_KB
// HEAP_KB 0: not bounded. What happened is printed by device_runner.py, one line per event; a process that ends early or hangs is judged by run.py.

import fs from 'node:fs';
import { boundHeap, start } from './interpreter.mjs';

const [packageDirectory, stage, directory, module, heapKb] = process.argv.slice(2);
// Written at once: what was said before a hang must not be lost with the process.
const line = (text) => fs.writeSync(1, `${text}\n`);

// A bound is one piece of heap: it has to be there beside what is loaded first.
const interpreter = await start({ packageDirectory, stage, line, heapFirstKib: 2048 + Number(heapKb) });
const runner = interpreter.micropython.pyimport('device_runner');
runner.about();
const count = runner.load(directory, module);
if (Number(heapKb) > 0) boundHeap(interpreter, Number(heapKb));
for (let index = 0; index < count; index += 1) {
  runner.run(index);
  runner.tell(index);
}
