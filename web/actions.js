// The lines in which the control loops say what they do, as `kubectl logs` of their pods shows them.

import { Refused, ask, server } from './api.js';
import { setTrouble } from './streams.js';

const waitFirst = 500, waitLongest = 15_000; // milliseconds
const tail = 400; // lines of before

const pair = / ([a-z]+)=("(?:[^"\\]|\\.)*"|\S+)/g;

// parse reads one line: { at, loop, object, wanted, observed, done, took, because }, or { at, note }.
export function parse(line) {
  const space = line.indexOf(' ');
  const action = { at: line.slice(0, space) };
  const rest = line.slice(space);
  if (!rest.startsWith(' loop=')) return { ...action, note: rest.slice(1) };
  for (const [, key, value] of rest.matchAll(pair)) action[key] = value.startsWith('"') ? unquoted(value) : value;
  return action;
}

function unquoted(text) {
  try { return JSON.parse(text); } catch { return text.slice(1, -1); }
}

// difference is what an action is to close, in words: of numbers how many more are wanted.
export function difference({ wanted, observed }) {
  if (wanted === undefined || observed === undefined) return '';
  if (wanted === observed) return 'none';
  const [w, o] = [Number(wanted), Number(observed)];
  if (Number.isNaN(w) || Number.isNaN(o)) return 'differs';
  return w > o ? `+${w - o}` : `−${o - w}`;
}

// followActions calls take with lines of a part of a server, as they come, until the returned function is called.
export function followActions(part, name, take) {
  const stop = new AbortController();
  run(`/api/v1/namespaces/kube-system/pods/${part}-${name}/log`, part, take, stop.signal);
  return () => { stop.abort(); setTrouble(part, ''); };
}

async function run(path, part, take, signal) {
  let last = '', wait = waitFirst;
  while (!signal.aborted) {
    try {
      const asked = new URLSearchParams({ follow: 'true', ...(last ? { sinceTime: last } : { tailLines: tail }) });
      let resumed = last !== '';
      const response = await ask(`${server}${path}?${asked}`, { signal });
      setTrouble(part, '');
      await readLines(response.body, (lines) => {
        wait = waitFirst;
        const fresh = resumed ? lines.filter((line) => timeOf(line) > last) : lines; // what was seen before the stream broke
        if (fresh.length === 0) return;
        last = timeOf(fresh.at(-1));
        resumed = false;
        take(fresh);
      });
    } catch (err) {
      if (signal.aborted) return;
      setTrouble(part, err.message);
    }
    await new Promise((done) => setTimeout(done, wait * (0.75 + Math.random() / 2)));
    wait = Math.min(2 * wait, waitLongest);
  }
}

const timeOf = (line) => line.slice(0, line.indexOf(' '));

async function readLines(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    let read;
    try { read = await reader.read(); } catch { throw new Refused(502, 'the connection to the server has ended'); }
    if (read.done) return;
    const lines = (rest + read.value).split('\n');
    rest = lines.pop();
    take(lines);
  }
}
