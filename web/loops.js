// The control loops as what they are: what each wants, what it sees, the difference, what it does about it, and because of what.

import { difference, followActions, newLog, parse } from './actions.js';
import { askLoops } from './api.js';
import { ago, clock, el, everyFrame, inPlace, say, setText, show } from './dom.js';
import { kindOf, link } from './kinds.js';
import { forget, loopButtons, offered } from './lessons.js';
import { every, setLive, setTrouble } from './streams.js';

const reportInterval = 2_000; // milliseconds
const loopsInterval = 500, actsInterval = 250; // milliseconds between two drawings
const keptMax = 2_000, shownMax = 150; // actions
const columns = ['Loop', 'Wanted', 'Observed', 'Difference', 'Act', 'When', 'Waiting', 'Working', 'Passes/s', 'Idle/s', 'Writes/min', 'Failing', 'Held'];
const parts = ['kube-controller-manager', 'kube-scheduler'];

export function loopsView(main) {
  const view = {
    lines: [], missed: 0, last: new Map(), report: null, before: null, chosen: '', text: '', paused: null, leader: '', ends: [],
    logs: new Map(), held: false, loopsDue: 0, actsDue: 0, timer: null,
    loops: el('tbody'), acts: el('tbody'), head: el('p', { className: 'detail' }, 'asking which server acts…'), count: el('span'),
  };
  const draw = everyFrame(() => paint(view, draw));
  const stopHolding = hold(view, draw);
  view.loops.addEventListener('click', (event) => choose(view, event.target.closest('button[data-loop]')));
  view.again = () => { view.loopsDue = view.actsDue = 0; draw(); };
  const pause = el('button', { type: 'button', 'aria-keyshortcuts': 'p', onclick: () => togglePause(view, pause) }, 'Hold still');
  const filter = el('input', {
    type: 'search', id: 'filter', placeholder: 'default/web', spellcheck: false, oninput: () => { view.text = filter.value; view.again(); },
  });
  show(main,
    el('section', { 'aria-label': 'Loops', className: 'half scroll', 'data-of': 'loops' }, view.head, table(
      columns, view.loops)),
    el('section', { 'aria-label': 'Acts', className: 'half scroll', 'data-of': parts.join(' ') },
      el('div', { className: 'bar' }, el('label', { for: 'filter' }, 'Only acts with'), filter, pause, view.count),
      el('div', { className: 'acts' }, table(['Time', 'Loop', 'About', 'Wanted', 'Observed', 'Difference', 'Act', 'Took', 'Because of'], view.acts))));
  const take = (report) => { setLive('loops'); takeReport(view, report, draw); };
  const end = every(reportInterval, 'loops', askLoops, take);
  view.ask = () => askLoops().then(take, () => {}); // what is wrong is said at the next turn
  return {
    end() { view.ended = true; end(); stopHolding(); forget(view.again); clearTimeout(view.timer); view.ends.forEach((e) => e()); setTrouble('no leader', ''); },
    keys: { p: () => pause.click() },
  };
}

// hold has rows stay where they are while a pointer is down on one, or a click would miss it.
function hold(view, draw) {
  const listening = new AbortController(), { signal } = listening;
  addEventListener('pointerdown', (event) => { view.held = event.button === 0 && !!event.target.closest('a, button'); }, { signal });
  const release = () => { view.held = false; draw(); };
  for (const name of ['pointerup', 'pointercancel', 'dragend', 'blur']) addEventListener(name, release, { signal });
  return () => listening.abort();
}

// paint draws acts and loops now and then: nobody can read nor hit what moves with each act, and drawing each has no time for anything else.
function paint(view, draw) {
  digest(view);
  if (view.held || view.ended) return; // after its end nothing is asked or heard any more
  const now = performance.now();
  if (view.actsDue <= now) { view.actsDue = now + actsInterval; paintActs(view); }
  if (view.loopsDue <= now) { view.loopsDue = now + loopsInterval; paintLoops(view); }
  clearTimeout(view.timer);
  view.timer = setTimeout(draw, Math.min(view.actsDue, view.loopsDue) - now);
}

function choose(view, button) {
  if (!button) return;
  const [loop] = button.dataset.loop.split('/');
  view.chosen = view.chosen === loop ? '' : loop;
  view.again();
}

const numbers = new Set(['Waiting', 'Working', 'Passes/s', 'Idle/s', 'Writes/min', 'Failing', 'Took']);
const table = (columns, body) => el('table', {}, el('thead', {}, el('tr', {}, columns.map((c) => el('th', { scope: 'col', className: numbers.has(c) ? 'number' : '' }, c)))), body);

// takeReport notes the loops' numbers, and follows the logs of the server on which they act.
function takeReport(view, report, draw) {
  [view.before, view.report] = [view.report, report];
  if (report.server && report.server !== view.leader && view.before?.loops.some((l) => l.paused)) {
    say('The loops act on another server now: what was paused goes on.');
  }
  setTrouble('no leader', report.server ? '' : 'no server leads now, so no loop acts');
  setText(view.head, report.server ? `The loops act on ${report.server}, in term ${report.term}.` : 'No loop acts.');
  if (report.server && report.server !== view.leader) {
    view.leader = report.server;
    view.ends.forEach((e) => e());
    view.ends = parts.map((part) => followActions(logOf(view, part), (lines) => { take(view, lines); draw(); }));
  }
  draw();
}

// logOf is the same log again when a server leads again.
function logOf(view, part) {
  const key = `${part}-${view.leader}`;
  if (!view.logs.has(key)) view.logs.set(key, newLog(part, view.leader));
  return view.logs.get(key);
}

// take keeps lines until the next picture: of a flood the last ones, and how many there were before.
function take(view, lines) {
  view.fresh = (view.fresh ?? []).concat(lines);
  if (view.fresh.length > keptMax) {
    view.missed += view.fresh.length - keptMax;
    view.fresh = view.fresh.slice(-keptMax);
  }
}

function digest(view) {
  for (const line of view.fresh ?? []) {
    const action = parse(line);
    view.lines.push(action);
    if (action.loop && !(view.last.get(action.loop)?.at > action.at)) view.last.set(action.loop, action); // another server's may be older
  }
  if (view.fresh?.length) view.lines.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)); // two logs are one list
  view.fresh = [];
  if (view.lines.length > keptMax) view.missed += view.lines.splice(0, view.lines.length - keptMax).length;
}

function paintLoops(view) {
  const loops = [...(view.report?.loops ?? [])].sort(troublesFirst(view));
  const takes = offered(view.again);
  const focused = document.activeElement?.dataset?.loop;
  inPlace(view.loops, loops.flatMap((loop) => loopRows(view, loop, takes.lessons)));
  if (focused) view.loops.querySelector(`[data-loop="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

// Those that are paused stand first, then those with trouble, then those that have acted.
const troublesFirst = (view) => (a, b) => (b.paused ?? false) - (a.paused ?? false) ||
  (b.circles?.length ?? 0) - (a.circles?.length ?? 0) || (b.failing?.length ?? 0) - (a.failing?.length ?? 0) ||
  b.depth - a.depth || view.last.has(b.loop) - view.last.has(a.loop) ||
  a.loop.localeCompare(b.loop) || a.queue.localeCompare(b.queue);

// loopRows are a loop's, and a second one for what it cannot do, which is as long as it is.
function loopRows(view, loop, lessons) {
  const last = view.last.get(loop.loop), chosen = view.chosen === loop.loop;
  const name = el('button', { type: 'button', className: 'plain', title: loop.queue, 'aria-pressed': String(chosen) },
    (loop.loop === loop.queue || loop.loop === `${loop.queue}-controller` ? loop.loop : `${loop.loop} · ${loop.queue}`) + (loop.paused ? ' (paused)' : ''));
  name.dataset.loop = `${loop.loop}/${loop.queue}`;
  const failing = loop.failing?.length ?? 0;
  const className = `${chosen ? 'chosen' : ''} ${failing || loop.circles?.length ? 'trouble' : ''}`;
  const wrong = loop.circles?.length ? `writes ${loop.circles[0].object} in circles` : loop.lastError?.error;
  return [el('tr', { className },
    el('th', { scope: 'row' }, name), gap(last),
    el('td', { className: 'long', title: last?.done ?? '' }, last ? last.done : ''), el('td', {}, last ? `${ago(last.at)} ago` : ''),
    [loop.depth, loop.working, aSecond(view, loop, 'passes'), aSecond(view, loop, 'idle'), loop.writesPerMinute, failing].map((n) => el('td', { className: 'number' }, String(n))),
    el('td', {}, lessons && loopButtons(loop, view.ask))),
  wrong && el('tr', { className: `${className} wrong` }, el('td', { colspan: columns.length }, `Last error: ${wrong}`))];
}

// aSecond is how many passes of the loop ended a second since the report before; idle ones have found nothing to do.
function aSecond(view, loop, what) {
  const before = view.before?.loops.find((l) => l.loop === loop.loop && l.queue === loop.queue);
  const seconds = (new Date(view.report.at) - new Date(view.before?.at)) / 1000;
  return before && seconds > 0 && loop[what] >= before[what] ? ((loop[what] - before[what]) / seconds).toFixed(1) : '';
}

function gap(action) {
  const differs = action ? difference(action) : '';
  return [el('td', {}, action?.wanted ?? ''), el('td', {}, action?.observed ?? ''),
    el('td', { className: `difference ${differs && differs !== 'none' ? 'open' : ''}` }, differs)];
}

function paintActs(view) {
  if (view.acts.parentElement.contains(document.activeElement) || view.paused) {
    if (view.paused === null) return setText(view.count, `${view.lines.length} acts, the list waits while a link of it has the focus`);
  }
  const from = view.paused ?? view.lines;
  const fits = from.filter((a) => (!view.chosen || a.loop === view.chosen) && (!view.text || about(a).includes(view.text)));
  const shown = fits.slice(-shownMax).reverse();
  setText(view.count, `${fits.length > shownMax ? `the newest ${shownMax} of ` : ''}${fits.length} acts${view.missed ? `; ${view.missed.toLocaleString('en')} more were left out` : ''}${view.paused ? ', held still' : ''}`);
  if (shown[0] === view.newest && shown.length === view.acts.children.length && shown.at(-1) === view.oldest) return;
  [view.newest, view.oldest] = [shown[0], shown.at(-1)];
  show(view.acts, shown.map(actRow));
}

const about = (a) => a.note ?? [a.loop, a.object, a.done, a.because].join(' ');

function togglePause(view, button) {
  view.paused = view.paused ? null : [...view.lines];
  setText(button, view.paused ? 'Go on' : 'Hold still');
  button.setAttribute('aria-pressed', String(!!view.paused));
  view.again();
}

function actRow(a) {
  const time = el('td', { className: 'time-of' }, a.at.slice(11, 23));
  time.title = `${clock(a.at)} here`;
  if (a.note) return el('tr', {}, time, el('td', { colspan: 8 }, a.note));
  return el('tr', { className: / refused: /.test(a.done) ? 'trouble' : '' }, time,
    el('td', { className: 'short', title: a.loop }, a.loop), el('td', { className: 'short', title: a.object }, a.object), gap(a), el('td', { className: 'long', title: a.done }, a.done), el('td', { className: 'number' }, a.took ?? ''),
    el('td', { className: 'short' }, because(a.because)));
}

// because is a link to the object of such as "Deployment default/web, version 7".
function because(text) {
  const found = /^(\S+) (?:(\S+)\/)?(\S+), version (\d+)$/.exec(text ?? '');
  if (!found) return text ?? '';
  const [, kind, namespace, name, version] = found;
  return el('a', { href: '#', title: `version ${version}`, onclick: async (event) => {
    event.preventDefault();
    const known = await kindOf(kind).catch(() => null);
    if (known) location.hash = link(known.resource, known.group, namespace, name);
  } }, `${kind} ${namespace ? namespace + '/' : ''}${name}`);
}
