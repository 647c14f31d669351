// The frame of the page: which view is shown, the field that finds objects, the keys, and what is wrong with the connection.

import { clusterView } from './cluster.js';
import { clock, el, say, setText } from './dom.js';
import { forget, kindOf, link } from './kinds.js';
import { loopsView } from './loops.js';
import { objectView } from './object.js';
import { live, onTrouble, troubles } from './streams.js';
import { whatIfView } from './whatif.js';

const main = document.getElementById('main'), connection = document.getElementById('connection'), query = document.getElementById('query');
const views = { cluster: clusterView, loops: loopsView, object: objectView, 'what-if': whatIfView };
let current = null;

// route shows the view of the address: #/VIEW/ARGUMENT/…
function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(decode);
  const chosen = Object.hasOwn(views, name) ? name : 'cluster';
  const cameFromLink = current !== null;
  current?.end();
  say('');
  main.className = chosen;
  current = views[chosen](main, rest);
  document.title = `${chosen === 'object' && rest[2] ? `${rest[0]}/${rest[2]}` : chosen} · Setpoint`;
  document.querySelectorAll('nav a').forEach((a) => {
    if (a.dataset.view === chosen) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
  });
  if (cameFromLink) main.focus();
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

// find reads KIND/NAME [-n NAMESPACE], as kubectl's users write it.
async function find(text) {
  const [, kind, name, namespace] = /^\s*([^\s/]+)[/ ]([^\s/]+)(?:\s+(?:-n|--namespace)[ =](\S+))?\s*$/.exec(text) ?? [];
  if (!kind) throw new Error('write KIND/NAME, and -n NAMESPACE behind it');
  forget(); // a kind may be new
  const found = await kindOf(kind);
  location.hash = link(found.resource, found.group, found.namespaced ? namespace ?? 'default' : '', name);
}

document.getElementById('find').addEventListener('submit', async (event) => {
  event.preventDefault();
  query.setCustomValidity('');
  try { await find(query.value); } catch (err) {
    query.setCustomValidity(err.message);
    query.reportValidity();
  }
});
query.addEventListener('input', () => query.setCustomValidity(''));

function paintConnection() {
  const texts = [...new Set([...troubles.values()].map((t) => t.text))];
  connection.className = texts.length ? 'trouble' : live ? '' : 'waiting';
  const well = live ? 'connected' : 'connecting…';
  setText(connection, texts.length ? `${texts.join('. ')}. Trying again…` : well);
  document.querySelectorAll('[data-of]').forEach(markOld);
}

// markOld has a part of the page say since when it is not kept as the cluster is, if it is not.
function markOld(part) {
  const olds = part.dataset.of.split(' ').map((name) => troubles.get(name)?.old).filter(Boolean);
  if (olds.length) part.dataset.old = `as it was at ${clock(Math.min(...olds))}: nothing newer is known`; else delete part.dataset.old;
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches('input:not([type=range]), textarea')) return;
  if (event.key === '/') { event.preventDefault(); query.focus(); return; }
  const view = { 1: 'cluster', 2: 'loops', 3: 'object', 4: 'what-if' }[event.key];
  if (view) location.hash = `#/${view}`;
  else current?.keys[event.key]?.();
});

document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
onTrouble(paintConnection);
addEventListener('hashchange', route);
addEventListener('error', (event) => main.prepend(el('p', { className: 'trouble', role: 'alert' }, `A fault of this page: ${event.message}`)));
route();
paintConnection();
