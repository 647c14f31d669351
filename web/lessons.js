// Lessons: what is broken, mended and held in a cluster to learn on, as `setpoint dev kill`, `heal` and `advance` and `setpoint loops
// pause`, `step` and `resume` do. Other clusters take none, and have no buttons for them.

import { askLessons, orderLesson, orderLoop } from './api.js';
import { el, say, setNow } from './dom.js';

const minute = 60e9; // nanoseconds
const refreshInterval = 5_000; // milliseconds

let offer = null, askedAt = -Infinity;
const busy = new Set();

// offered is what the cluster takes, as far as it is known: { lessons, clock }. changed hears when it is known.
export function offered(changed) {
  if (performance.now() - askedAt > refreshInterval) ask(changed);
  return { lessons: !!offer && !offer.refused, clock: !!offer && !offer.noClock };
}

async function ask(changed) {
  askedAt = performance.now();
  try {
    const had = JSON.stringify(offered(changed));
    offer = await askLessons();
    if (!offer.noClock) setNow(offer.now);
    if (had !== JSON.stringify(offered(changed))) changed();
  } catch (err) {
    if (err.status === 403) offer = { refused: err.message, noClock: err.message }; // otherwise it is known when a server answers
  }
}

// button is one that does something once: while that is under way, another press does nothing.
function button(key, text, label, act, does) {
  const made = el('button', { type: 'button', 'aria-label': label, 'aria-disabled': busy.has(key) ? 'true' : null, onclick: () => press(key, act, does) }, text);
  made.dataset.key = key;
  return made;
}

async function press(key, act, does) {
  if (busy.has(key)) return;
  busy.add(key);
  say(`${does}…`);
  try {
    say(await act());
  } catch (err) {
    say(`${does}: ${err.message}`, true);
  }
  busy.delete(key);
}

const ended = { node: 'is switched off', server: 'stops', pod: 'has crashed' };
const mended = { node: 'is switched on', server: 'is started', pod: 'runs' };

// partButtons kill and heal a node, a server, or a pod by NAMESPACE/NAME.
export function partButtons(part, name) {
  const order = (what, words, becomes) => button(`${what} ${part} ${name}`, words, `${words} ${part} ${name}`, async () => {
    await orderLesson({ order: what, part, name });
    return `${part} ${name} ${becomes[part]}`;
  }, `${words} ${part} ${name}`);
  return el('span', { className: 'lessons' }, order('kill', 'Kill', ended), order('heal', 'Heal', mended));
}

// loopButtons hold a loop, let one pass of it through, and have it go on.
export function loopButtons({ loop, queue, paused }, done) {
  const order = (what, words, becomes) => button(`${what} ${queue}`, words, `${words} ${loop} ${queue}`, async () => {
    await orderLoop(what, queue);
    done();
    return `${queue} ${becomes}`;
  }, `${words} ${queue}`);
  return el('span', { className: 'lessons' }, paused
    ? [order('step', 'Step', 'may do one pass'), order('resume', 'Resume', 'goes on')]
    : order('pause', 'Pause', 'is paused'));
}

// clockBar moves the cluster's clock.
export function clockBar() {
  const minutes = el('input', { type: 'number', id: 'minutes', min: 1, max: 60, step: 1, value: 5 });
  const act = async () => {
    const by = Number(minutes.value);
    if (!minutes.reportValidity() || !by) throw new Error('say 1 to 60 minutes');
    await orderLesson({ order: 'advance', by: by * minute });
    askedAt = -Infinity;
    return `${by} minutes have passed`;
  };
  return el('div', { className: 'bar', role: 'group', 'aria-label': "The cluster's clock" }, el('label', { for: 'minutes' }, 'Let minutes pass for the cluster'), minutes,
    button('advance', 'Move the clock', "Move the cluster's clock", act, 'Move the clock'));
}
