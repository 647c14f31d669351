// The grid of pods: one row or more for each node, one cell for each pod. Only rows that can be seen are elements.

import { el, everyFrame, setText } from './dom.js';
import { link } from './kinds.js';

const rowHeight = 22, cellWidth = 18, labelWidth = 230; // pixels, as in style.css
const spareRows = 4;

export const states = {
  ready: 'ready', unready: 'running, not ready', pending: 'pending', failed: 'failing', ending: 'being deleted', done: 'done',
};

const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const inNumber = new Intl.Collator('en', { numeric: true }).compare;

// newGrid returns { element, draw }: draw shows tables of nodes and pods, each a Map. tell hears of the pod that was last pointed at or
// moved to, at each drawing again, with its key; undefined: it is there no more.
export function newGrid(tell) {
  const canvas = el('div', { className: 'canvas', role: 'rowgroup' });
  const element = el('div', { className: 'grid', role: 'grid', 'aria-label': 'Pods by node. Arrow keys move, Enter shows the pod' }, canvas);
  const grid = {
    element, canvas, rows: [], shown: new Map(), active: [0, 0], on: null, told: '', perRow: 1, nodes: new Map(), pods: new Map(), tell,
  };
  const paint = everyFrame(() => paintRows(grid));
  const relay = everyFrame(() => { layOut(grid); paintRows(grid); retell(grid); });
  element.addEventListener('scroll', paint, { passive: true });
  element.addEventListener('keydown', (event) => move(grid, event));
  element.addEventListener('click', (event) => open(grid, event.target));
  element.addEventListener('mouseover', (event) => point(grid, event.target));
  element.addEventListener('focusin', (event) => { activate(grid, event.target); point(grid, event.target); });
  new ResizeObserver(relay).observe(element);
  return { element, draw: (nodes, pods) => { Object.assign(grid, { nodes, pods }); relay(); } };
}

// point tells of the pod of a cell; retell how it is now.
function point(grid, target) {
  const pod = podOf(grid, target);
  if (!pod) return;
  grid.told = keyOf(pod);
  grid.tell(pod, grid.told);
}

function retell(grid) { if (grid.told) grid.tell(grid.pods.get(grid.told), grid.told); }

const keyOf = (pod) => `${pod.namespace}/${pod.name}`;

// layOut arranges pods in rows: those without a node first, then nodes by name.
function layOut(grid) {
  grid.perRow = Math.max(1, Math.floor((grid.element.clientWidth - labelWidth - 16) / cellWidth));
  const groups = new Map([...grid.nodes.keys()].map((key) => [key.slice(1), []]));
  for (const pod of grid.pods.values()) {
    if (!groups.has(pod.node)) groups.set(pod.node, []);
    groups.get(pod.node).push(pod);
  }
  grid.rows = [];
  const names = [...groups.keys()].sort((a, b) => inNumber(a, b));
  for (const name of names) {
    const pods = groups.get(name).sort(byName);
    for (let at = 0; at === 0 || at < pods.length; at += grid.perRow) {
      grid.rows.push({ group: name, node: at ? null : name, count: pods.length, pods: pods.slice(at, at + grid.perRow) });
    }
  }
  grid.element.setAttribute('aria-rowcount', grid.rows.length);
  grid.element.setAttribute('aria-colcount', grid.perRow + 1);
  grid.canvas.style.height = `${grid.rows.length * rowHeight}px`;
  activateAt(grid, ...whereIs(grid, grid.on) ?? grid.active);
}

// activateAt makes a cell the one that Tab leads to, and keeps what it shows: cells before it come and go.
function activateAt(grid, row, column) {
  grid.active = within(grid, row, column);
  const { group, pods } = grid.rows[grid.active[0]] ?? {};
  grid.on = group === undefined ? null : { group, pod: pods[grid.active[1] - 1] };
}

// whereIs finds a node, or a pod; instead of a pod that is gone, its node.
function whereIs(grid, on) {
  if (!on) return null;
  let label = null;
  for (const [at, { group, node, pods }] of grid.rows.entries()) {
    const column = on.pod ? pods.findIndex((p) => p.name === on.pod.name && p.namespace === on.pod.namespace) : -1;
    if (column >= 0) return [at, column + 1];
    if (group === on.group && node !== null) label = [at, 0];
  }
  return label;
}

function within(grid, row, column) {
  row = Math.max(0, Math.min(grid.rows.length - 1, row));
  return [row, Math.max(0, Math.min(grid.rows[row]?.pods.length ?? 0, column))];
}

function paintRows(grid) {
  const top = Math.floor(grid.element.scrollTop / rowHeight);
  const first = Math.max(0, top - spareRows);
  const last = Math.min(grid.rows.length, top + Math.ceil(grid.element.clientHeight / rowHeight) + spareRows);
  const hadFocus = grid.element !== document.activeElement && grid.element.contains(document.activeElement);
  for (const [at, row] of grid.shown) {
    if ((at < first || at >= last) && at !== grid.active[0]) { row.remove(); grid.shown.delete(at); }
  }
  for (let at = first; at < last; at++) paintRow(grid, at);
  if (grid.rows.length && (grid.active[0] < first || grid.active[0] >= last)) paintRow(grid, grid.active[0]); // Tab leads there
  const active = cellAt(grid, ...grid.active);
  if (hadFocus && active !== document.activeElement) active?.focus({ preventScroll: true });
}

function paintRow(grid, at) {
  let row = grid.shown.get(at);
  if (!row) {
    row = el('div', { className: 'row', role: 'row', 'aria-rowindex': at + 1 }, el('div', { role: 'rowheader', className: 'label', tabIndex: -1 }));
    row.style.top = `${at * rowHeight}px`;
    grid.shown.set(at, row);
    grid.canvas.append(row);
  }
  const { node, count, pods } = grid.rows[at];
  paintLabel(row.firstChild, node, count, grid.nodes.get('/' + node));
  while (row.children.length > pods.length + 1) row.lastChild.remove();
  while (row.children.length < pods.length + 1) row.append(el('div', { role: 'gridcell', 'aria-colindex': row.children.length + 1 }));
  pods.forEach((pod, i) => paintCell(row.children[i + 1], pod));
  Array.from(row.children).forEach((cell, i) => { cell.tabIndex = grid.active[0] === at && grid.active[1] === i ? 0 : -1; });
}

// The parts of servers are shown as pods of nodes that do not exist.
export const partsOf = /^(.*)\.servers\.setpoint\.local$/;

function paintLabel(label, name, count, node) {
  if (name === null) { label.className = 'label more'; return setText(label, ''); }
  const part = partsOf.exec(name)?.[1];
  const trouble = part ? '' : !name ? 'waiting for a node' : !node ? 'no such node' : !node.ready ? 'not ready' : node.cordoned ? 'cordoned' : '';
  label.className = `label ${trouble && name ? 'trouble' : ''}`;
  setText(label, `${part ? `parts of ${part}` : name || 'no node'} · ${count}${trouble ? ' · ' + trouble : ''}`);
  label.title = node?.why || node?.tainted || '';
}

function paintCell(cell, pod) {
  if (cell.pod === pod) return;
  cell.pod = pod;
  cell.className = `cell ${pod.state}`;
  cell.setAttribute('aria-label', about(pod));
}

// about says in one line how a pod is.
export function about(pod) {
  return `${pod.namespace}/${pod.name}: ${states[pod.state]}${pod.reason ? ', ' + pod.reason : ''}` +
    `${pod.restarts ? `, ${pod.restarts} restarts` : ''}${pod.owner ? `, of ${pod.owner}` : ''}`;
}

const podOf = (grid, target) => (grid.element.contains(target) ? target.pod : undefined);

const cellAt = (grid, row, column) => grid.shown.get(row)?.children[column];

function activate(grid, cell) {
  const row = cell.closest('.row');
  if (!row) return;
  const old = cellAt(grid, ...grid.active);
  if (old) old.tabIndex = -1;
  activateAt(grid, Number(row.getAttribute('aria-rowindex')) - 1, [...row.children].indexOf(cell));
  cell.tabIndex = 0;
}

function move(grid, event) {
  const [row, column] = grid.active, page = Math.floor(grid.element.clientHeight / rowHeight) - 1;
  const to = {
    ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
    Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? grid.rows.length : row, grid.perRow],
    PageUp: [row - page, column], PageDown: [row + page, column],
  }[event.key];
  if (event.key === 'Enter') return open(grid, event.target);
  if (!to || event.altKey || event.metaKey) return;
  event.preventDefault();
  activateAt(grid, ...to);
  scrollTo(grid, grid.active[0]);
  paintRows(grid);
  cellAt(grid, ...grid.active)?.focus({ preventScroll: true });
}

function scrollTo(grid, row) {
  const top = row * rowHeight, bottom = top + rowHeight, { scrollTop, clientHeight } = grid.element;
  if (top < scrollTop) grid.element.scrollTop = top;
  else if (bottom > scrollTop + clientHeight) grid.element.scrollTop = bottom - clientHeight;
}

function open(grid, target) {
  const pod = podOf(grid, target);
  if (pod) { location.hash = link('pods', '', pod.namespace, pod.name); return; }
  const label = target.closest?.('.label:not(.more)'), row = label && grid.rows[Number(label.parentElement.getAttribute('aria-rowindex')) - 1];
  if (row?.node) location.hash = link('nodes', '', '', row.node);
}
