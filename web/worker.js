// Follows lists in a thread of its own: reads them, watches them, and sends what changed, at most once each flushEvery. A change that is
// followed by another of the same object before that is left out and counted, so a flood of events costs no more than one change of each
// object.

import { Refused, ask, listAll, server } from './api.js';
import { keyOf, slim } from './slim.js';

const flushEvery = 50, waitFirst = 500, waitLongest = 15_000; // milliseconds
const lineMax = 16 << 20; // characters of one event; an object has 3 MiB
const following = new Map();

onmessage = ({ data }) => {
  following.get(data.id)?.abort();
  following.delete(data.id);
  if (data.stop) return;
  const stop = new AbortController();
  following.set(data.id, stop);
  follow(data, stop.signal);
};

// follow goes on until it is stopped: after a failure it waits, each time longer, until something was read again.
async function follow({ id, kind, path, selector }, signal) {
  const query = selector ? { fieldSelector: selector } : {};
  const stream = {
    id, kind, path, query, signal, changes: new Map(), left: 0, version: '', listed: false,
    expired: false, wait: waitFirst,
  };
  while (!signal.aborted) {
    try {
      if (!stream.version) await list(stream);
      await watch(stream);
      await pause(waitFirst);
    } catch (err) {
      if (signal.aborted) return;
      await recover(stream, err);
    }
  }
}

// recover lists at once what has expired, unless that did not help the time before.
async function recover(stream, err) {
  const again = stream.expired;
  stream.expired = err.status === 410;
  if (stream.expired) stream.version = '';
  if (stream.expired && !again) return;
  postMessage({ id: stream.id, trouble: err.message });
  await pause(stream.wait);
  stream.wait = Math.min(2 * stream.wait, waitLongest);
}

const pause = (wait) => new Promise((done) => setTimeout(done, wait * (0.75 + Math.random() / 2)));

async function list(stream) {
  let items = [];
  const keep = (page) => {
    const changes = page.map((o) => [keyOf(o), slim[stream.kind](o)]);
    if (!stream.listed) postMessage({ id: stream.id, changes }); // the first time there is something to look at after each page
    items = items.concat(changes);
  };
  const asked = { ...stream.query, resourceVersion: 0 }; // what this server has; the watch brings what is newer
  stream.version = await listAll(stream.path, asked, { signal: stream.signal }, () => { items = []; }, keep);
  stream.listed = true;
  stream.changes.clear();
  postMessage({ id: stream.id, all: items });
}

// watch returns when the server ends it, as it does every few minutes.
async function watch(stream) {
  const asked = new URLSearchParams({ ...stream.query, watch: 'true', allowWatchBookmarks: 'true', resourceVersion: stream.version });
  const response = await ask(`${server}${stream.path}?${asked}`, { signal: stream.signal });
  postMessage({ id: stream.id, live: true });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    let read;
    try { read = await reader.read(); } catch { throw new Refused(502, 'the connection to the server has ended'); }
    if (read.done) return;
    const lines = (rest + read.value).split('\n');
    rest = lines.pop();
    if (rest.length > lineMax) throw new Error('an event is too large for this page');
    lines.forEach((line) => take(stream, JSON.parse(line)));
  }
}

function take(stream, { type, object }) {
  if (type === 'ERROR') throw new Refused(object.code, object.message ?? '');
  [stream.version, stream.wait, stream.expired] = [object.metadata.resourceVersion, waitFirst, false];
  if (type === 'BOOKMARK') return;
  if (stream.changes.size === 0) setTimeout(() => flush(stream), flushEvery);
  const key = keyOf(object);
  if (stream.changes.has(key)) stream.left++;
  stream.changes.set(key, type === 'DELETED' ? null : slim[stream.kind](object));
}

function flush(stream) {
  if (!stream.signal.aborted && stream.changes.size) postMessage({ id: stream.id, changes: [...stream.changes], left: stream.left });
  stream.changes.clear();
}
