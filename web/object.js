// One object: its owners, its conditions, why it is as it is, and what it was.

import { askHistory, askWhy, getJSON, server } from './api.js';
import { ago, clock, el, show, showAgain } from './dom.js';
import { kindOf, link, listPath } from './kinds.js';
import { forget, offered, partButtons } from './lessons.js';
import { every, follow, leaveOut, setLive, setTrouble } from './streams.js';

// refreshInterval is the least time between two readings, however often the object changes; without an answer it doubles up to waitLongest.
const refreshInterval = 1_000, waitLongest = 15_000, versionInterval = 5_000; // milliseconds
const ownersMax = 8, changesMax = 100, fieldsMax = 40;

const usage = [
  el('h2', {}, 'An object'),
  el('p', {}, 'Write a kind and a name into the field above, as for kubectl: ', el('code', {}, 'deploy/web -n shop'), ', ', el('code', {}, 'node/sim-1'),
    '. Or choose a pod or a node on the page of the cluster, or what an act of a loop was because of.'),
];

// objectView shows the object that a route names: [RESOURCE[.GROUP], NAMESPACE or -, NAME].
export function objectView(main, [resource, namespace, name]) {
  if (!name) return usageView(main);
  const view = {
    main, namespace: namespace === '-' ? '' : namespace, name, ended: false, table: null, timer: null, reading: false, again: false, wait: refreshInterval,
    offerChanged: () => lessons(view),
  };
  show(main, el('section', {}, el('h2', {}, `${resource}/${name}`), el('p', {}, 'reading…')));
  attempt(view, resource);
  return { end() { view.ended = true; clearTimeout(view.timer); forget(view.offerChanged); view.table?.stop(); leaveOut('object'); leaveOut('reading'); }, keys: {} };
}

// usageView asks for the version, to know whether somebody answers.
function usageView(main) {
  show(main, el('section', {}, usage));
  return { end: every(versionInterval, 'version', () => getJSON(`${server}/version`), () => setLive('version')), keys: {} };
}

const problem = (err) => el('p', { className: 'trouble', role: 'alert' }, err.message);

// attempt begins, and again if no server answers.
async function attempt(view, word) {
  try { await begin(view, word); } catch (err) {
    if (view.ended) return;
    show(view.main, el('section', {}, el('h2', {}, `${word}/${view.name}`), problem(err)));
    if (!isPassing(err)) return;
    setTrouble('object', err.message);
    view.timer = setTimeout(() => { view.timer = null; attempt(view, word); }, longer(view));
  }
}

// isPassing reports whether another answer can be hoped for: nobody has answered, or the credentials have ended.
const isPassing = (err) => err.status === 0 || err.status === 401 || err.status >= 500;

function longer(view) {
  view.wait = Math.min(2 * view.wait, waitLongest);
  return view.wait;
}

async function begin(view, word) {
  view.kind = await kindOf(word, word.includes('.') ? undefined : '').catch(() => kindOf(word));
  if (view.ended) return;
  setLive('object');
  if (view.kind.namespaced && !view.namespace) view.namespace = 'default';
  view.parts = { head: el('section'), lessons: el('p'), owners: el('section'), conditions: el('section'), why: el('section'), history: el('section') };
  show(view.main, el('div', { className: 'scroll fill', 'data-of': 'object reading' }, Object.values(view.parts)));
  lessons(view);
  refresh(view);
  if (view.kind.resource === 'secrets' && !view.kind.group) return; // the door shows none
  view.table = follow('object', listPath(view.kind, view.namespace), () => later(view), `metadata.name=${view.name}`);
}

// lessons offers to kill and heal a node or a pod of a cluster to learn on.
function lessons(view) {
  const { parts, kind, namespace, name } = view;
  const part = kind.group ? null : { nodes: 'node', pods: 'pod' }[kind.resource];
  const takes = part && offered(view.offerChanged).lessons;
  show(parts.lessons, takes && partButtons(part, part === 'pod' ? `${namespace}/${name}` : name));
}

// later reads all of it again, soon.
function later(view) {
  view.again = true;
  if (view.reading || view.timer) return;
  view.timer = setTimeout(() => { view.timer = null; refresh(view); }, view.wait);
}

async function refresh(view) {
  view.reading = true;
  view.again = false;
  const asked = { kind: view.kind.group ? `${view.kind.resource}.${view.kind.group}` : view.kind.resource, namespace: view.namespace, name: view.name };
  const passing = await Promise.all([
    section(view.parts.why, 'Why', askWhy(asked), whySection),
    section(view.parts.history, 'History', askHistory(asked), historySection),
    readObject(view),
  ]);
  view.reading = false;
  if (view.ended) return;
  readEnded(view, passing.find(Boolean));
  if (view.again) later(view);
}

// readEnded says what has failed and may go well the next time, which is later each time.
function readEnded(view, trouble) {
  if (trouble) {
    setTrouble('reading', trouble);
    view.again = !!longer(view);
    return;
  }
  setLive('reading');
  view.wait = refreshInterval;
}

// section shows what is answered, or why there is no answer, unless there was one before and will be one again. It returns what has
// failed and may go well the next time.
async function section(parent, title, asking, content) {
  try {
    const answer = await asking;
    showAgain(parent, el('h3', {}, title), content(answer));
    return '';
  } catch (err) {
    if (!isPassing(err) || !parent.hasChildNodes()) showAgain(parent, el('h3', {}, title), problem(err));
    return isPassing(err) ? err.message : '';
  }
}

async function readObject(view) {
  const { parts, kind, namespace, name } = view;
  const title = el('h2', {}, `${kind.kind} ${namespace ? namespace + '/' : ''}${name}`);
  try {
    const object = await getJSON(`${server}${listPath(kind, namespace)}/${encodeURIComponent(name)}`);
    showAgain(parts.head, title, facts(object));
    showAgain(parts.conditions, el('h3', {}, 'Conditions'), conditions(object.status?.conditions));
    const owners = await ownersOf(object, namespace);
    showAgain(parts.owners, el('h3', {}, 'Owners'), owners);
    return '';
  } catch (err) {
    if (isPassing(err) && parts.head.hasChildNodes()) return err.message;
    show(parts.head, title, problem(err));
    show(parts.conditions);
    show(parts.owners);
    return isPassing(err) ? err.message : '';
  }
}

function facts({ metadata, spec, status }) {
  const said = [`created ${clock(metadata.creationTimestamp)}, ${ago(metadata.creationTimestamp)} ago`, `revision ${metadata.resourceVersion}`, `uid ${metadata.uid}`];
  if (status?.phase) said.unshift(status.phase);
  if (spec?.replicas !== undefined) said.unshift(`wants ${spec.replicas} replicas, sees ${status?.replicas ?? 0}, ${status?.readyReplicas ?? 0} ready`);
  if (metadata.deletionTimestamp) said.unshift(`being deleted since ${clock(metadata.deletionTimestamp)}; ${(metadata.finalizers ?? []).join(', ') || 'no finalizer'} holds it`);
  const on = spec?.nodeName && ['on ', el('a', { href: link('nodes', '', '', spec.nodeName) }, spec.nodeName), ', '];
  return el('p', {}, on || null, said.join(', '));
}

function conditions(list) {
  if (!list?.length) return el('p', {}, 'It has none.');
  return el('table', {}, el('thead', {}, el('tr', {}, ['Type', 'Status', 'Since', 'Reason', 'Message'].map((c) => el('th', { scope: 'col' }, c)))),
    el('tbody', {}, list.map((c) => el('tr', {}, el('th', { scope: 'row' }, c.type), el('td', {}, c.status),
      el('td', {}, c.lastTransitionTime ? `${ago(c.lastTransitionTime)}` : ''), el('td', {}, c.reason ?? ''), el('td', {}, c.message ?? '')))));
}

// ownersOf is the chain of owners, the nearest first.
async function ownersOf(object, namespace) {
  const chain = [];
  let owner = controllerOf(object);
  while (owner && chain.length < ownersMax) {
    const kind = await kindOf(owner.kind, groupOf(owner.apiVersion)).catch(() => null);
    if (!kind) { chain.push(el('li', {}, `${owner.kind}/${owner.name}`)); break; }
    const within = kind.namespaced ? namespace : '';
    chain.push(el('li', {}, el('a', { href: link(kind.resource, kind.group, within, owner.name) }, `${owner.kind}/${owner.name}`)));
    const next = await getJSON(`${server}${listPath(kind, within)}/${encodeURIComponent(owner.name)}`).catch(() => null);
    owner = next && controllerOf(next);
  }
  return chain.length ? el('ol', { className: 'chain' }, chain) : el('p', {}, 'Nobody owns it.');
}

const controllerOf = ({ metadata: { ownerReferences: all = [] } }) => all.find((r) => r.controller) ?? all[0];
const groupOf = (apiVersion) => (apiVersion.includes('/') ? apiVersion.split('/')[0] : '');

// named is a link to what an answer names.
function named(o) {
  if (!o?.name) return 'another object';
  const text = `${o.kind}/${o.name}`;
  return o.resource ? el('a', { href: link(o.resource, o.group, o.namespace, o.name) }, text) : text;
}

const details = (key, summary, ...children) => {
  const made = el('details', {}, el('summary', {}, summary), children);
  made.dataset.key = key;
  return made;
};

function whySection(answer) {
  return [
    el('p', { className: answer.held ? 'trouble' : '' }, answer.conclusion),
    causes(answer.causes ?? []),
    answer.nodes?.length ? details('nodes', `What the scheduler says of ${answer.nodes.length} nodes`, el('ul', {}, answer.nodes.map((n) => el('li', {},
      `${n.name}: ${(n.refusals ?? []).map((r) => `${r.plugin}: ${r.reasons.join(', ')}`).join('; ') || 'it fits'}`)))) : null,
    answer.innocent?.length ? details('innocent', innocentWords(answer.innocent.length),
      el('ul', {}, answer.innocent.map((s) => el('li', {}, named(s.object), `: ${s.why}`)))) : null,
  ];
}

const innocentWords = (n) => (n === 1 ? '1 other object was looked at, and is not the reason' : `${n} other objects were looked at, and are not the reason`);

function causes(list) {
  if (!list.length) return null;
  return el('ul', {}, list.map((c) => el('li', {}, named(c.object), `: ${c.what}`, c.change ? el('div', {}, `change: ${c.change}`) : null,
    c.command ? el('div', {}, 'run: ', el('code', {}, c.command)) : null, causes(c.causes ?? []))));
}

function historySection(answer) {
  const changes = answer.changes.slice(-changesMax).reverse();
  const left = answer.changes.length - changes.length;
  return [
    (answer.missing ?? []).length ? el('p', { className: 'trouble' }, 'A part of the history is missing on this server.') : null,
    changes.length ? el('ol', { className: 'history' }, changes.map(changeItem)) : el('p', {}, 'It did not change for as long as history reaches.'),
    left || answer.more ? el('p', {}, `${left || ''} older changes are not shown: `, el('code', {}, 'setpoint history'), ' has them.') : null,
  ];
}

// whoOf leaves out what all loops have in common.
const whoOf = (user) => (user || 'somebody').replace(/^system:serviceaccount:kube-system:/, '');

function changeItem(c) {
  const made = el('li', {}, change(c));
  made.dataset.key = `change ${c.resourceVersion}`;
  return made;
}

function change(c) {
  const words = [`${c.time ? clock(c.time) : 'at an unknown time'}: ${c.did} by ${whoOf(c.by)}${c.manager ? ` with ${c.manager}` : ''}, revision ${c.resourceVersion}`];
  if (c.cause) words.push(', because ', named(c.cause.object), ` was ${c.cause.did || 'changed'}${c.cause.by ? ` by ${whoOf(c.cause.by)}` : ''}`);
  if (c.unknown) words.push(` (${c.unknown})`);
  const fields = c.fields ?? [], more = (c.fieldsMore ?? 0) + Math.max(0, fields.length - fieldsMax);
  if (!fields.length) return words;
  const all = fields.length + (c.fieldsMore ?? 0);
  const shown = details(c.resourceVersion, `${all} ${all === 1 ? 'field' : 'fields'}`, el('ul', { className: 'fields' }, fields.slice(0, fieldsMax).map(field),
    more ? el('li', {}, `and ${more} more`) : null));
  shown.open = fields.length <= 3;
  return [...words, shown];
}

const field = (f) => [
  f.before === undefined ? null : el('li', { className: 'before' }, el('del', {}, `${f.path}: ${value(f.before)}`)),
  f.after === undefined ? null : el('li', { className: 'after' }, el('ins', {}, `${f.path}: ${value(f.after)}`)),
];

const value = (v) => (typeof v === 'string' ? v : JSON.stringify(v));
