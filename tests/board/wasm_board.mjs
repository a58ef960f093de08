// A "board" that is MicroPython's WebAssembly build: node wasm_board.mjs PACKAGE_DIRECTORY FOLDER, its console on standard input and output.
//
// FOLDER is the file system: copied into the interpreter's memory at the start, and back at a reset (Ctrl-D at the prompt, which ends the
// process; board.py starts it anew). It does what a board does: boot.py, main.py, then the prompt; LEVERET_RAW in the environment: boot.py alone.
//
// Laws: everything is synchronous, as on a board: a program that runs for ever gets its input when it polls or reads, and Ctrl-C then.
// What this build cannot do is answered as a board without it would: raw paste (05 41 01) with "R\0" (MICROPYTHON.md section 5). It has no
// os.urandom, which every board has: node's stands in.

import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { start } from '../micropython/interpreter.mjs';

const [packageDirectory, folder] = process.argv.slice(2);
const OWN = new Set(['tmp', 'home', 'dev', 'proc']);   // directories of the build's own
const PAUSE_MS = 2;
const POLLIN = 1, POLLOUT = 4;
const CTRL_C = 3;
const RAW_PASTE = [5, 0x41, 1];

const piece = Buffer.alloc(4096);
const sleeper = new Int32Array(new SharedArrayBuffer(4));
const pause = () => Atomics.wait(sleeper, 0, 0, PAUSE_MS);
const waiting = [];             // octets off the console that nobody has read
let running = false;            // a program has the board: Ctrl-C is for it

function listen() {
  let count = 0;
  try {
    count = fs.readSync(0, piece);
  } catch (error) {
    if (error.code === 'EIO') process.exit(0);          // the terminal is gone
    if (error.code !== 'EAGAIN') throw error;
  }
  for (const octet of piece.subarray(0, count)) {
    if (running && octet === CTRL_C) micropython._module._mp_sched_keyboard_interrupt();
    else waiting.push(octet);
  }
}

function tell(octets) {
  for (let at = 0; at < octets.length;) {
    try {
      at += fs.writeSync(1, octets, at, octets.length - at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      pause();
    }
  }
}

/** Standard input and output as the console of a board: poll waits a moment, a read takes what is there. */
function connect(FS) {
  const poll = () => {
    if (waiting.length === 0) listen();
    if (waiting.length === 0) { pause(); listen(); }
    return (waiting.length ? POLLIN : 0) | POLLOUT;
  };
  const read = (stream, buffer, offset, length) => {
    const taken = waiting.splice(0, length);
    taken.forEach((octet, index) => { buffer[offset + index] = octet; });
    return taken.length;
  };
  const write = (stream, buffer, offset, length) => {
    tell(Buffer.from(buffer.subarray(offset, offset + length)));
    return length;
  };
  for (const number of [0, 1, 2]) {
    const stream = FS.getStream(number);
    stream.stream_ops = { ...stream.stream_ops, poll, read, write };
  }
}

function save(FS, from, to) {
  const names = FS.readdir(from).filter((name) => name !== '.' && name !== '..' && !(from === '/' && OWN.has(name)));
  for (const name of fs.existsSync(to) ? fs.readdirSync(to) : []) {
    if (!names.includes(name)) fs.rmSync(path.join(to, name), { recursive: true });
  }
  fs.mkdirSync(to, { recursive: true });
  for (const name of names) {
    const source = `${from === '/' ? '' : from}/${name}`, target = path.join(to, name);
    if (FS.isDir(FS.stat(source).mode)) save(FS, source, target);
    else fs.writeFileSync(target, FS.readFile(source));
  }
}

/** Run a file: true when it asks for a soft reset (sys.exit). */
function run(name) {
  if (!micropython.FS.analyzePath(`/${name}`).exists) return false;
  running = true;
  try {
    micropython.runPython(micropython.FS.readFile(`/${name}`, { encoding: 'utf8' }));
  } catch (error) {
    if (error.name !== 'PythonError') throw error;
    if (error.type === 'SystemExit') return true;
    tell(Buffer.from(`${error.message}\r\n`));
  }
  running = false;
  return false;
}

/** The prompt, until Ctrl-D asks for a reset. */
function prompt() {
  let asked = [];               // octets that may become a request for raw paste
  micropython.replInit();
  for (;;) {
    listen();
    if (waiting.length === 0) pause();
    while (waiting.length > 0) {
      const octet = waiting.shift();
      if (octet === RAW_PASTE[asked.length]) {
        asked.push(octet);
        if (asked.length === RAW_PASTE.length) { asked = []; tell(Buffer.from('R\0')); }
        continue;
      }
      const held = [...asked, octet];
      asked = [];
      for (const each of held) if (micropython.replProcessChar(each)) return;
    }
  }
}

const { micropython } = await start({ packageDirectory, stage: folder, line: (octets) => tell(Buffer.from(octets)), linebuffer: false });
connect(micropython.FS);
micropython.registerJsModule('_chance', { octet: () => crypto.randomInt(256) });
micropython.runPython('import os, _chance\nos.urandom = lambda size: bytes([_chance.octet() for _ in range(size)])');
run('boot.py');
if (process.env.LEVERET_RAW || !run('main.py')) prompt();
save(micropython.FS, '/', folder);
process.exit(0);
