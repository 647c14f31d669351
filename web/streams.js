// The page's side of worker.js: tables that are kept as the cluster is. A page that nobody looks at follows nothing: a browser has few
// connections, and the cluster other things to do.

import { now } from './dom.js';

const worker = new Worker('worker.js', { type: 'module' });
const tables = new Map();
const hiddenMax = 5_000; // milliseconds until a hidden page leaves
const waitLongest = 15_000;
let nextID = 1;

// troubles is what keeps the page from following, by the name of what it follows: { text, old }. What the page shows of that is from before
// the trouble if a server has told of it: old is when the trouble began, or null. listeners hear of changes.
export const troubles = new Map();
const listeners = new Set(), told = new Set();
export function onTrouble(listener) { listeners.add(listener); }
export function setTrouble(name, text) {
  if (text) troubles.set(name, { text, old: told.has(name) ? troubles.get(name)?.old ?? now() : null }); else troubles.delete(name);
  listeners.forEach((l) => l());
}

// live is whether a server has answered at all.
export let live = false;
export function setLive(name) {
  live = true;
  told.add(name);
  setTrouble(name, '');
}

// leaveOut has the page speak no more of what it no longer shows.
export function leaveOut(name) {
  told.delete(name);
  setTrouble(name, '');
}

// attend calls begin now and whenever somebody looks again at a page that was left; begin returns what ends it when the page is left. The
// returned function ends it for good.
const attended = new Set();
let left = document.hidden, leaving = null;
export function attend(begin) {
  const one = { begin, end: left ? null : begin() };
  attended.add(one);
  return () => { attended.delete(one); one.end?.(); };
}

function leave() {
  left = true;
  attended.forEach((one) => { one.end?.(); one.end = null; });
}

function comeBack() {
  clearTimeout(leaving);
  if (!left) return;
  left = false;
  attended.forEach((one) => { one.end = one.begin(); });
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) leaving = setTimeout(leave, hiddenMax); else comeBack();
});

// follow keeps a table of a list; changed hears whenever it is another, with the keys that changed (null: all). It returns the table,
// a Map from NAMESPACE/NAME, with the method stop; left is how many changes it was not told of, because others of the same object came at once.
export function follow(kind, path, changed, selector) {
  const id = nextID++, table = Object.assign(new Map(), { kind, loaded: false, left: 0, changed });
  tables.set(id, table);
  const end = attend(() => {
    worker.postMessage({ id, kind, path, selector });
    return () => worker.postMessage({ id, stop: true });
  });
  table.stop = () => { tables.delete(id); end(); leaveOut(kind); };
  return table;
}

worker.onmessage = ({ data }) => {
  const table = tables.get(data.id);
  if (!table) return;
  if (data.trouble) return setTrouble(table.kind, data.trouble);
  if (data.live) return setLive(table.kind);
  if (data.all) {
    table.clear();
    data.all.forEach(([key, value]) => table.set(key, value));
    table.loaded = true;
    return table.changed(null);
  }
  for (const [key, value] of data.changes) {
    if (value) table.set(key, value); else table.delete(key);
  }
  table.left = data.left;
  table.changed(data.changes.map(([key]) => key));
};

// every calls ask now and then each interval while somebody looks, and never twice at once; take gets its answers. It returns a function
// that ends it: what is answered later is dropped.
export function every(interval, name, ask, take) {
  let ended = false, timer = null, wait = interval;
  const turn = async () => {
    if (!document.hidden) {
      try {
        const answer = await ask();
        if (ended) return;
        take(answer);
        wait = interval;
        setTrouble(name, '');
      } catch (err) {
        if (ended) return;
        wait = Math.min(2 * wait, waitLongest);
        setTrouble(name, err.message);
      }
    }
    timer = setTimeout(turn, wait);
  };
  turn();
  return () => { ended = true; clearTimeout(timer); leaveOut(name); };
}
