// Elements are made here. Text is always text: nothing from the cluster is read as HTML.

// el makes an element. Properties that begin with "on" are listeners, those with a dash and "role" attributes; children that are null or
// false are left out.
export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key.includes('-') || key === 'role' || key === 'colspan' || key === 'scope' || key === 'for') made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

// inPlace replaces what an element contains; a button that had the focus has it again, found by its data-key.
export function inPlace(parent, ...children) {
  const key = parent.contains(document.activeElement) && document.activeElement.dataset.key;
  show(parent, ...children);
  if (key) parent.querySelector(`button[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// show replaces what an element contains.
export function show(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
}

// setText changes a text only if it differs, so that screen readers are not told the same again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// everyFrame returns a function that has draw run once before the next picture, however often it is called.
export function everyFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}

// say tells what has come of what somebody did.
export function say(text, isTrouble = false) {
  const said = document.getElementById('said');
  said.className = isTrouble ? 'trouble' : '';
  setText(said, text);
}

// now is the cluster's time, in milliseconds: that of this machine, unless the cluster has a clock of its own that was moved.
let ahead = 0;
const slack = 60_000; // two machines' clocks differ a little
export const now = () => Date.now() + ahead;
export function setNow(time) {
  const differs = new Date(time) - Date.now();
  ahead = Math.abs(differs) > slack ? differs : 0;
}

// ago says how long a time is past.
export function ago(time) {
  const seconds = Math.max(0, Math.round((now() - new Date(time)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

// clock shows a time of day with seconds, with its date if that is not today.
export function clock(time) {
  const at = new Date(time);
  const today = at.toDateString() === new Date(now()).toDateString();
  return (today ? '' : at.toLocaleDateString() + ' ') + at.toLocaleTimeString([], { hour12: false });
}

// showAgain is show for what somebody may be using: details stay open or closed, and the focus stays on what it was on. Both are found
// again by data-key.
export function showAgain(parent, ...children) {
  const open = new Map([...parent.querySelectorAll('details')].map((d) => [d.dataset.key, d.open]));
  const focused = parent.contains(document.activeElement) ? placeOf(document.activeElement) : null;
  show(parent, ...children);
  parent.querySelectorAll('details').forEach((d) => { d.open = open.get(d.dataset.key) ?? d.open; });
  if (focused) [...parent.querySelectorAll('a, summary, button')].find((e) => placeOf(e) === focused)?.focus({ preventScroll: true });
}

const placeOf = (e) => `${e.closest('[data-key]')?.dataset.key} ${e.getAttribute('href')}`;
