// One MicroPython interpreter (WebAssembly build) under node: files in, memory in reach, heap bounded on request.
//
// Laws: one interpreter per process (the build keeps its state in globalThis); the files come from a directory laid out as the device's
// (see stage.py) and are copied into the interpreter's memory file system. It runs nothing by itself.
//
// Measured facts it rests on (MICROPYTHON.md section 5): the build exports no view of its memory, so `memory` is caught at instantiation;
// objects never move, so an address from uctypes.addressof stays valid; the heap grows on its own up to 128 MB unless it is bounded.

import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const KIB = 1024;
const HEAP_FIRST_KIB = 2048;        // room for compiling all sources before a bound is set
const BRIDGE_RESERVE = 32;          // blocks of 1 KiB the JavaScript side of the build needs for its own calls

function catchMemory() {
  const caught = {};
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (...args) => {
    const result = await instantiate(...args);
    caught.memory = (result.instance ?? result).exports.memory;
    WebAssembly.instantiate = instantiate;
    return result;
  };
  return caught;
}

function copyTree(FS, from, to) {
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const source = path.join(from, entry.name);
    const target = `${to}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!FS.analyzePath(target).exists) FS.mkdir(target);
      copyTree(FS, source, target);
    } else {
      FS.writeFile(target, fs.readFileSync(source));
    }
  }
}

// node would print the whole source line, and the build is one line of 100 KB.
function reportShort(error) {
  fs.writeSync(2, `${error.name === 'PythonError' ? error.message : error.stack ?? error}\n`);
  process.exit(1);
}

/** Start an interpreter. `packageDirectory`: the npm package; `stage`: the device's files; `line(text)` gets its standard output, with
 * `linebuffer` false as octets as they come. */
export async function start({ packageDirectory, stage, line, heapFirstKib = HEAP_FIRST_KIB, linebuffer = true }) {
  process.on('uncaughtException', reportShort);
  const caught = catchMemory();
  const { loadMicroPython } = await import(pathToFileURL(path.join(packageDirectory, 'micropython.mjs')));
  const options = { heapsize: heapFirstKib * KIB, stdout: line, stderr: line, linebuffer };
  const micropython = await loadMicroPython(options);
  copyTree(micropython.FS, stage, '');
  return { micropython, memory: caught.memory };
}

/** Leave `heapKib` KiB of heap free and let nothing grow. */
export function boundHeap({ micropython, memory }, heapKib) {
  memory.grow = () => { throw new RangeError('the heap is bounded'); };
  const malloc = micropython._module._malloc;
  const reserve = Array.from({ length: BRIDGE_RESERVE }, () => malloc(KIB));
  for (const size of [1024 * KIB, 64 * KIB, 8 * KIB, KIB]) while (malloc(size) !== 0);
  for (const address of reserve) micropython._module._free(address);
  micropython.runPython(`import heap_bound\nheap_bound.fill(${heapKib})`);
}
