// What would happen: a question, and the answer as two states side by side, what moves, ends and waits, and why.

import { askWhatIf, getJSON, listAll, server } from './api.js';
import { el, show } from './dom.js';
import { partsOf } from './grid.js';
import { link } from './kinds.js';
import { every, setLive } from './streams.js';

const versionInterval = 5_000; // milliseconds
const nodesMax = 200, podsMax = 100, linesMax = 200; // rows, pods of a node, lines of a list

const acts = {
  drain: { words: 'a node is drained', of: 'node', example: 'sim-1' },
  lose: { words: 'nodes lose their power', of: 'nodes', example: 'sim-1,sim-2' },
  scale: { words: 'an object is scaled', of: 'object', example: 'deployment/web=6' },
  delete: { words: 'an object is deleted', of: 'object', example: 'deployment/web' },
};

// last outlives the view: an answer is there still after a look at an object of it.
const last = { act: 'drain', target: '', namespace: '', answer: null };

export function whatIfView(main) {
  const act = el('select', { id: 'act' }, Object.entries(acts).map(([value, { words }]) => el('option', { value, selected: value === last.act }, words)));
  const target = el('input', { id: 'target', value: last.target, autocomplete: 'off', spellcheck: false, required: true });
  target.setAttribute('list', 'nodes');
  const namespace = el('input', { id: 'namespace', value: last.namespace, placeholder: 'default', autocomplete: 'off', spellcheck: false });
  const nodes = el('datalist', { id: 'nodes' }), ask = el('button', {}, 'Ask'), stop = el('button', { type: 'button', disabled: true }, 'Stop');
  const told = el('div', { className: 'scroll fill', id: 'answer', role: 'region', 'aria-label': 'Answer', tabIndex: 0 }), state = el('p', { className: 'detail', role: 'status' },
    'A copy of the cluster is made in the memory of this machine, and runs on a clock of its own. The cluster itself is only read.');
  const view = { act, target, namespace, nodes, ask, stop, told, state, asking: null };
  const form = el('form', { className: 'bar question', 'aria-label': 'What is to happen' },
    el('label', { for: 'act' }, 'What if'), act, target, el('label', { for: 'namespace' }, 'in namespace'), namespace, nodes, ask, stop);
  target.setAttribute('aria-label', 'Which');
  const choose = () => { target.placeholder = acts[act.value].example; };
  act.addEventListener('change', choose);
  choose();
  form.addEventListener('submit', (event) => { event.preventDefault(); submit(view); });
  stop.addEventListener('click', () => view.asking?.abort());
  show(main, form, state, told);
  if (last.answer) paint(told, last.answer);
  offerNodes(nodes);
  const end = every(versionInterval, 'version', () => getJSON(`${server}/version`), () => setLive('version'));
  return { end() { end(); view.asking?.abort(); }, keys: {} };
}

async function offerNodes(parent) {
  const names = [];
  try {
    await listAll('/api/v1/nodes', {}, {}, () => { names.length = 0; }, (page) => names.push(...page.map((n) => n.metadata.name)));
  } catch { return; } // names can be typed
  show(parent, names.map((value) => el('option', { value })));
}

function questionOf({ act, target, namespace }) {
  const wanted = target.value.trim(), question = namespace.value.trim() ? { namespace: namespace.value.trim() } : {};
  question[act.value] = act.value === 'lose' ? wanted.split(',').map((name) => name.trim()) : wanted;
  return question;
}

async function submit(view) {
  if (view.asking) return;
  Object.assign(last, { act: view.act.value, target: view.target.value, namespace: view.namespace.value });
  const asking = view.asking = new AbortController();
  view.ask.disabled = true;
  view.stop.disabled = false;
  view.state.className = 'detail';
  show(view.state, 'The copy is made, and runs until nothing changes any more…');
  try {
    last.answer = await askWhatIf(questionOf(view), { signal: asking.signal });
    paint(view.told, last.answer);
    show(view.state, `answered; the cluster as of revision ${last.answer.revision}`);
  } catch (err) {
    view.state.className = err.name === 'AbortError' ? 'detail' : 'trouble';
    show(view.state, err.name === 'AbortError' ? 'stopped' : err.message);
  }
  view.asking = null;
  view.ask.disabled = false;
  view.stop.disabled = true;
}

const count = (list) => list?.length ?? 0;

function outcome(a) {
  const counts = `${count(a.made)} pods made, ${count(a.moved)} moved, ${count(a.ended)} ended, ${count(a.pending)} pending, ${count(a.notReady)} not ready.`;
  return `${a.quiet ? `Nothing changes any more after ${a.lasted}` : `It still changes after ${a.lasted}: ${(a.restless ?? []).join(', ')}`}. ${counts}`;
}

function paint(parent, a) {
  show(parent, el('h2', {}, `If ${a.what}`), el('p', { className: a.quiet ? '' : 'trouble' }, outcome(a)), sideBySide(a),
    waiting('Pending', a.pending), waiting('Not ready', a.notReady),
    list('Moved', counted(a.moved, (m) => `${m.from.owner} in ${m.from.namespace}: ${place(m.from)} → ${place(m.to)}`)),
    list('Made', counted(a.made, of)), list('Ended', counted(a.ended, of)),
    list('Budgets', (a.budgets ?? []).map((b) => [`${b.name} in ${b.namespace}`, b.refused ? `refuses ${b.refused} evictions: ${b.said}` : '',
      b.broken !== '0s' ? `is not kept for ${b.broken}` : '', b.lasts ? 'and not at the end' : ''].filter(Boolean).join(', '))),
    list('Services without endpoints', (a.services ?? []).map((s) => `${s.name} in ${s.namespace}: none from ${s.from} on, ${s.lasts ? 'to the end' : `for ${s.for}`}`)),
    list('Quota', (a.quotas ?? []).map(refused)), list('Refused', (a.refused ?? []).map(refused)), list('Due later', a.due),
    list('Events', (a.events ?? []).map((e) => `${e.at}: ${e.what}${e.count > 1 ? ` (${e.count} times)` : ''}`)), list('Assumed', a.assumptions));
}

const place = (pod) => pod.node || 'no node';
const owner = (pod) => pod.owner || `pod/${pod.name}`;
const of = (pod) => `${owner(pod)} in ${pod.namespace} on ${place(pod)}`;
const refused = (q) => `${q.object} in ${q.namespace} after ${q.at}: ${q.said}`;

// counted are lines of which equal ones are told once.
function counted(all, line) {
  const counts = new Map();
  for (const one of all ?? []) counts.set(line(one), (counts.get(line(one)) ?? 0) + 1);
  return [...counts].map(([text, n]) => (n > 1 ? `${n} × ${text}` : text));
}

function list(title, lines) {
  if (!lines?.length) return null;
  const more = lines.length - linesMax;
  return el('section', {}, el('h3', {}, title), el('ul', {}, lines.slice(0, linesMax).map((l) => el('li', {}, l)), more > 0 && el('li', {}, `and ${more} more`)));
}

// waiting are pods that wait or are not ready, with why, told once of those of an owner with the same reasons.
function waiting(title, pods) {
  if (!pods?.length) return null;
  const groups = new Map();
  for (const pod of pods) {
    const key = [pod.namespace, owner(pod), pod.node, pod.before, ...(pod.why ?? [])].join('\n');
    groups.set(key, [...(groups.get(key) ?? []), pod]);
  }
  return el('section', {}, el('h3', {}, title), el('ul', {}, [...groups.values()].map(([pod, ...others]) => el('li', {},
    `${others.length ? `${others.length + 1} × ` : ''}${of(pod)}${pod.before ? ', as before' : ''}`,
    el('ul', {}, (pod.why ?? []).map((line) => el('li', {}, line)))))));
}

// sideBySide is a row for each node, those first whose pods are others then, with its pods now and then.
function sideBySide({ states }) {
  if (!states) return null;
  const rows = new Map([['', { name: '', now: [], then: [] }], ...states.nodes.map((n) => [n.name, { name: n.name, state: n, now: [], then: [] }])]);
  const of = (pod) => rows.get(pod.node ?? '') ?? rows.set(pod.node, { name: pod.node, now: [], then: [] }).get(pod.node);
  const byUID = (pods) => new Map(pods.map((p) => [p.uid, p])); // a pod that was made again can have the name and the node of the former
  const [before, after] = [byUID(states.now), byUID(states.then)];
  const same = (a, b) => a && b && (a.node ?? '') === (b.node ?? '') && !a.ending === !b.ending;
  for (const pod of states.now) of(pod).now.push({ pod, change: same(pod, after.get(pod.uid)) ? '' : 'ends' });
  for (const pod of states.then) of(pod).then.push({ pod, change: same(before.get(pod.uid), pod) ? '' : pod.ending ? 'ends' : 'comes' });
  const differs = (r) => [...r.now, ...r.then].some((p) => p.change) || r.state?.now !== r.state?.then;
  const all = [...rows.values()].filter((r) => (r.name ? !partsOf.test(r.name) : r.now.length || r.then.length)).sort((a, b) => differs(b) - differs(a));
  const more = all.length - nodesMax;
  return el('section', { 'aria-label': 'Now and then' }, legend(), el('table', { className: 'sides' },
    el('thead', {}, el('tr', {}, ['Node', 'Now', 'Then'].map((c) => el('th', { scope: 'col' }, c)))),
    el('tbody', {}, all.slice(0, nodesMax).map((r) => el('tr', { className: differs(r) ? 'differs' : '' },
      el('th', { scope: 'row' }, r.name ? el('a', { href: link('nodes', '', '', r.name) }, r.name) : 'no node'),
      side(r.now, r.state?.now), side(r.then, r.state?.then))))), more > 0 && el('p', {}, `and ${more} more nodes`));
}

const legend = () => el('ul', { className: 'legend' }, [['ready', '', 'ready'], ['unready', '', 'not ready'], ['pending', '', 'pending'], ['done', '', 'done'],
  ['ready', 'ends', 'is not there then'], ['ready', 'comes', 'is new']].map(([state, change, words]) => el('li', {}, el('span', { className: `cell ${state} ${change}` }), words)));

function side(pods, trouble) {
  const state = (pod) => (pod.over ? 'done' : pod.ending ? 'ending' : pod.ready ? 'ready' : pod.node ? 'unready' : 'pending');
  const words = { ends: 'is not there then', comes: 'is new', '': 'stays' };
  const cell = ({ pod, change }) => {
    const says = `${pod.namespace}/${pod.name}: ${state(pod)}, ${words[change]}`;
    return el('li', {}, el('span', { className: `cell ${state(pod)} ${change}`, role: 'img', 'aria-label': says, title: says }));
  };
  const number = (change) => pods.filter((p) => p.change === change).length, more = pods.length - podsMax;
  const counts = [`${pods.length} pods`, number('comes') && `${number('comes')} new`, number('ends') && `${number('ends')} not there then`, trouble];
  return el('td', {}, el('p', {}, counts.filter(Boolean).join(' · ')),
  el('ul', { className: 'pods' }, [...pods].sort((a, b) => !!b.change - !!a.change).slice(0, podsMax).map(cell), more > 0 && el('li', {}, `and ${more} more`)));
}
