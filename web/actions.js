// The lines in which the control loops say what they do, as `kubectl logs` of their pods shows them.

import { Refused, ask, server } from './api.js';
import { attend, leaveOut, setLive, setTrouble } from './streams.js';

const waitFirst = 500, waitLongest = 15_000; // milliseconds
const tail = 400, tailAgain = 2_000; // lines of before: at first, and after the log was left

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

// newLog is the log of a part of a server. It knows the newest lines that were read, so that each is taken once, however often it is
// followed.
export const newLog = (part, name) => ({
  part, path: `/api/v1/namespaces/kube-system/pods/${part}-${name}/log`, newest: '', lines: new Set(),
});

// followActions calls take with lines of a log, as they come, until the returned function is called.
export function followActions(log, take) {
  const end = attend(() => {
    const stop = new AbortController();
    run(log, take, stop.signal);
    return () => stop.abort();
  });
  return () => { end(); leaveOut(log.part); };
}

async function run(log, take, signal) {
  for (let wait = waitFirst; !signal.aborted; wait = Math.min(2 * wait, waitLongest)) {
    try {
      const from = log.newest ? { sinceTime: log.newest, tailLines: tailAgain } : { tailLines: tail };
      const asked = new URLSearchParams({ follow: 'true', ...from });
      const seen = new Set(log.lines);
      const response = await ask(`${server}${log.path}?${asked}`, { signal });
      setLive(log.part);
      await readLines(response.body, (lines) => {
        if (signal.aborted) return;
        wait = waitFirst;
        const fresh = lines.filter((line) => !seen.has(line));
        note(log, fresh);
        if (fresh.length) take(fresh);
      });
    } catch (err) {
      if (signal.aborted) return;
      setTrouble(log.part, err.message);
    }
    await new Promise((done) => setTimeout(done, wait * (0.75 + Math.random() / 2)));
  }
}

// note keeps the lines of the newest second: they come once more when the log is followed again.
function note(log, lines) {
  for (const line of lines) {
    const at = line.slice(0, line.indexOf(' '));
    if (secondOf(at) > secondOf(log.newest)) log.lines.clear();
    if (at > log.newest) log.newest = at;
    if (secondOf(at) === secondOf(log.newest)) log.lines.add(line);
  }
}

const secondOf = (time) => time.slice(0, 'yyyy-mm-ddThh:mm:ss'.length);

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
