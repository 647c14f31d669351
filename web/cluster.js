// The cluster: its servers, its nodes and their pods, now or at a time that was.

import { askServers } from './api.js';
import { el, everyFrame, inPlace, setText, show } from './dom.js';
import { about, newGrid, states } from './grid.js';
import { clockBar, forget, offered, partButtons } from './lessons.js';
import { newSlider } from './past.js';
import { every, follow, setLive } from './streams.js';

const statusInterval = 2_000; // milliseconds

export function clusterView(main) {
  const servers = el('div', { className: 'scroll' }), verdict = el('p', { id: 'verdict' });
  const legend = el('ul', { className: 'legend', 'aria-label': 'Pods by state' });
  const line = el('p', { className: 'detail' }, 'Point at a pod, or move to one with Tab and the arrow keys.');
  const grid = newGrid((pod, key) => setText(line, pod ? about(pod) : `${key}: there is no such pod ${view.past ? 'then' : 'any more'}`));
  const view = { past: null, reading: false, report: null };
  const clock = el('div');
  const draw = everyFrame(() => {
    const { nodes, pods } = view.past ?? view;
    grid.element.setAttribute('aria-busy', String(view.reading || !view.past && !(nodes.loaded && pods.loaded)));
    paintLegend(legend, nodes, pods);
    grid.draw(nodes, pods);
  });
  const slider = newSlider((past, reading) => { Object.assign(view, { past, reading }); main.classList.toggle('past', !!past); draw(); });
  show(main,
    el('section', { 'aria-label': 'Servers', 'data-of': 'servers' }, servers, verdict, clock),
    el('section', { className: 'fill', 'aria-label': 'Nodes and pods', 'data-of': 'nodes pods' }, slider.element, legend, grid.element, line));
  view.nodes = follow('nodes', '/api/v1/nodes', draw);
  view.pods = follow('pods', '/api/v1/pods', draw);
  const paint = () => { if (view.report) paintServers(servers, clock, view.report, offered(paint)); };
  const endStatus = every(statusInterval, 'servers', askServers, (report) => {
    if (report.servers.some((s) => s.status)) setLive('servers');
    view.report = report;
    paint();
    setText(verdict, report.verdict.text);
    verdict.className = report.verdict.personNeeded ? 'trouble' : '';
    slider.reach(report.servers.map((s) => s.status?.history?.since).filter(Boolean).sort()[0]);
  });
  return { end() { endStatus(); forget(paint); view.nodes.stop(); view.pods.stop(); slider.end(); main.classList.remove('past'); }, keys: slider.keys };
}

function paintLegend(legend, nodes, pods) {
  const counts = {};
  for (const pod of pods.values()) counts[pod.state] = (counts[pod.state] ?? 0) + 1;
  const ready = [...nodes.values()].filter((n) => n.ready).length;
  if (legend.children.length === 0) {
    legend.append(el('li'), ...Object.keys(states).map((state) => el('li', {}, el('span', { className: `cell ${state}` }), el('span'))), el('li'));
  }
  setText(legend.children[0], `${ready} of ${nodes.size} nodes ready, ${pods.size} pods:`);
  setText(legend.lastChild, pods.left ? `${pods.left.toLocaleString('en')} changes were left out: newer ones of the same pods came at once` : '');
  Object.entries(states).forEach(([state, words], i) => setText(legend.children[i + 1].lastChild, `${counts[state] ?? 0} ${words}`));
}

const columns = ['Server', 'Role', 'Term', 'Applied', 'Lag', 'Revision', 'Log', 'Free disk', 'Sync p99'];

function paintServers(parent, clock, report, takes) {
  if (takes.clock !== clock.hasChildNodes()) show(clock, takes.clock && clockBar());
  const newest = Math.max(...report.servers.map((s) => s.status?.applied ?? 0));
  const leader = report.servers.map((s) => s.status).filter((s) => s?.leader).sort((a, b) => b.term - a.term)[0]?.leader;
  inPlace(parent, el('table', {},
    el('thead', {}, el('tr', {}, columns.map((c, i) => el('th', { scope: 'col', className: i > 1 ? 'number' : '' }, c)),
      takes.lessons && el('th', { scope: 'col' }, 'Lessons'))),
    el('tbody', {}, report.servers.map((s) => {
      const row = serverRow(s, leader, newest);
      if (takes.lessons) row.append(el('td', {}, partButtons('server', s.status?.name ?? s.name)));
      return row;
    }))));
}

function serverRow({ name, status, error, refused }, leader, newest) {
  const head = el('th', { scope: 'row' }, name);
  if (!status) return el('tr', { className: 'trouble' }, head, el('td', { colspan: columns.length - 1 }, `${refused ? 'is not told' : 'does not answer'}: ${error}`));
  const role = name === leader ? 'leader' : 'follower';
  const cells = [role, status.term, status.applied, newest - status.applied, status.revision, mebibytes(status.logBytes),
    mebibytes(status.freeBytes) + (status.lowSpace ? ' (low)' : ''), `${(status.syncP99Nanoseconds / 1e6).toFixed(1)} ms`];
  return el('tr', {}, head, cells.map((c, i) => el('td', { className: i ? 'number' : role }, String(c))));
}

const mebibytes = (bytes) => (bytes > 10 * 2 ** 30 ? `${Math.round(bytes / 2 ** 30)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`);
