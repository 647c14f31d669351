// Lessons: what is broken, mended and held in a cluster to learn on, as `setpoint dev kill`, `heal` and `advance` and `setpoint loops
// pause`, `step` and `resume` do. Other clusters take none, and have no buttons for them.

import { askLessons, orderLesson, orderLoop } from './api.js';
import { el, say, setNow } from './dom.js';

const minute = 60e9; // nanoseconds
const refreshInterval = 5_000; // milliseconds

let offer = null, askedAt = -Infinity, forbidden = false, again = null;
const busy = new Set(), listeners = new Set();

const known = () => ({ lessons: !!offer && !offer.refused, clock: !!offer && !offer.noClock });

// offered is what the cluster takes, as far as it is known: { lessons, clock }. changed hears whenever that is another, until forget.
export function offered(changed) {
  listeners.add(changed);
  if (!forbidden && performance.now() - askedAt > refreshInterval) ask();
  return known();
}

export function forget(changed) { listeners.delete(changed); }

// ask asks again until a server has answered, as long as somebody listens. Who may not know is told so once.
async function ask() {
  askedAt = performance.now();
  clearTimeout(again);
  let answer;
  try {
    answer = await askLessons();
  } catch (err) {
    if (err.status !== 403) {
      again = setTimeout(() => listeners.size && ask(), refreshInterval);
      return;
    }
    forbidden = true;
    answer = { refused: err.message, noClock: err.message };
  }
  if (!answer.noClock) setNow(answer.now);
  learn(answer);
}

function learn(answer) {
  const had = JSON.stringify(known());
  offer = answer;
  if (had !== JSON.stringify(known())) listeners.forEach((changed) => changed());
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
