// The page's side of worker.js: tables that are kept as the cluster is. A page that nobody looks at follows nothing: a browser has few
// connections, and the cluster other things to do.

const worker = new Worker('worker.js', { type: 'module' });
const tables = new Map();
const hiddenMax = 5_000; // milliseconds until a hidden page leaves
let nextID = 1;
let away = null;

// troubles is what keeps the page from following, by the name of what it follows; listeners hear of changes.
export const troubles = new Map();
const listeners = new Set();
export function onTrouble(listener) { listeners.add(listener); }
export function setTrouble(name, text) {
  if (text) troubles.set(name, text); else troubles.delete(name);
  listeners.forEach((l) => l());
}

// follow keeps a table of a list; changed hears whenever it is another, with the keys that changed (null: all). It returns the table,
// a Map from NAMESPACE/NAME, with the method stop.
export function follow(kind, path, changed, selector) {
  const table = Object.assign(new Map(), { id: nextID++, loaded: false, asked: { kind, path, selector }, changed, stop });
  tables.set(table.id, table);
  start(table);
  return table;
}

function start(table) { if (!document.hidden || away === null) worker.postMessage({ id: table.id, ...table.asked }); }

function stop() {
  tables.delete(this.id);
  worker.postMessage({ id: this.id, stop: true });
  setTrouble(this.asked.kind, '');
}

worker.onmessage = ({ data }) => {
  const table = tables.get(data.id);
  if (!table) return;
  if (data.trouble) return setTrouble(table.asked.kind, data.trouble);
  if (data.live) return setTrouble(table.asked.kind, '');
  if (data.all) {
    table.clear();
    data.all.forEach(([key, value]) => table.set(key, value));
    table.loaded = true;
    return table.changed(null);
  }
  for (const [key, value] of data.changes) {
    if (value) table.set(key, value); else table.delete(key);
  }
  table.changed(data.changes.map(([key]) => key));
};

// visible reports whether somebody may look.
export const visible = () => !document.hidden;

const returns = new Set();
export function onReturn(listener) { returns.add(listener); }

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    away = setTimeout(() => { away = 'left'; tables.forEach((t) => worker.postMessage({ id: t.id, stop: true })); }, hiddenMax);
    return;
  }
  clearTimeout(away);
  if (away === 'left') { tables.forEach((t) => worker.postMessage({ id: t.id, ...t.asked })); returns.forEach((l) => l()); }
  away = null;
});

// every calls ask now and then each interval while somebody looks, and never twice at once. It returns a function that ends it.
export function every(interval, name, ask) {
  let ended = false, timer = null, wait = interval;
  const turn = async () => {
    if (visible()) {
      try { await ask(); wait = interval; if (!ended) setTrouble(name, ''); } catch (err) {
        wait = Math.min(2 * wait, 15_000);
        if (!ended) setTrouble(name, err.message);
      }
    }
    if (!ended) timer = setTimeout(turn, wait);
  };
  turn();
  return () => { ended = true; clearTimeout(timer); setTrouble(name, ''); };
}
