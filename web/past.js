// The slider over time. Nodes and pods of a time are read as the servers' history has them: lists at exactly the revision of that time.

import { askMoment, listAll } from './api.js';
import { ago, clock, el, now as nowThere, setText } from './dom.js';
import { keyOf, slim } from './slim.js';

const second = 1000, step = 10;

// newSlider returns { element, reach, keys, end }. changed hears of { nodes, pods } of a time, or of null: now, and whether
// another time is being read.
export function newSlider(changed) {
  const range = el('input', { type: 'range', id: 'time', min: 0, max: 0, value: 0, step: 1, 'aria-keyshortcuts': '[ ]' });
  const now = el('button', { type: 'button', disabled: true, 'aria-keyshortcuts': 'n', onclick: () => slider.live() }, 'Now');
  const said = el('output', { htmlFor: 'time' }, 'now');
  const slider = { range, now, said, changed, shown: null, origin: 0, reading: null, live: () => live(slider) };
  const by = (seconds) => { range.value = Number(range.value) + seconds; chosen(slider); };
  range.addEventListener('input', () => chosen(slider));
  const element = el('div', { className: 'time' }, el('label', { for: 'time' }, 'Time'),
    el('button', { type: 'button', 'aria-label': 'ten seconds back', onclick: () => by(-step) }, '◀'), range,
    el('button', { type: 'button', 'aria-label': 'ten seconds on', onclick: () => by(step) }, '▶'), now, said);
  return {
    element, reach: (since) => reach(slider, since), end: () => { slider.reading?.abort(); slider.reading = null; },
    keys: { '[': () => by(-step), ']': () => by(step), n: slider.live },
  };
}

// reach is told since when there is history. At the end of the range is now; it does not move while another time is shown.
function reach(slider, since) {
  const { range } = slider;
  if (!since || !isNow(slider) || range.matches(':active')) return;
  slider.origin = Math.ceil(new Date(since) / second);
  range.max = Math.max(0, Math.floor(nowThere() / second) - slider.origin);
  range.value = range.max;
  range.setAttribute('aria-valuetext', 'now');
}

const isNow = ({ range }) => Number(range.value) >= Number(range.max);

function live(slider) {
  slider.reading?.abort();
  slider.reading = null;
  slider.range.value = slider.range.max;
  slider.range.setAttribute('aria-valuetext', 'now');
  slider.now.disabled = true;
  setText(slider.said, 'now');
  tell(slider, null, false);
}

// chosen shows another time. Who drags on gives up what is being read.
async function chosen(slider) {
  if (isNow(slider)) return live(slider);
  const at = new Date((slider.origin + Number(slider.range.value)) * second);
  const words = `${clock(at)}, ${ago(at)} ago`;
  slider.range.setAttribute('aria-valuetext', words);
  slider.now.disabled = false;
  setText(slider.said, `reading ${words}…`);
  tell(slider, slider.shown, true);
  slider.reading?.abort();
  const reading = slider.reading = new AbortController();
  try {
    const past = await readPast(at, { signal: reading.signal });
    if (slider.reading !== reading) return;
    setText(slider.said, `${words}, revision ${past.revision}`);
    tell(slider, past, false);
  } catch (err) {
    if (slider.reading !== reading) return; // given up
    setText(slider.said, `${words}: ${err.message}`);
    tell(slider, nothing, false);
  }
}

// nothing is shown of a time that cannot be read.
const nothing = { nodes: new Map(), pods: new Map() };

function tell(slider, shown, reading) {
  slider.shown = shown;
  slider.changed(shown, reading);
}

async function readPast(at, options) {
  const { resourceVersion: revision } = await askMoment(at, options);
  const [nodes, pods] = await Promise.all([readList('nodes', revision, options), readList('pods', revision, options)]);
  return { revision, nodes, pods };
}

async function readList(kind, revision, options) {
  const table = new Map(), query = { resourceVersion: revision, resourceVersionMatch: 'Exact' };
  await listAll(`/api/v1/${kind}`, query, options, () => table.clear(), (page) => page.forEach((o) => table.set(keyOf(o), slim[kind](o))));
  return table;
}
