// Which kinds there are, and the paths of their objects.

import { getJSON, server } from './api.js';

const aggregated = { headers: { Accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' } };

let reading = null;

// kinds are all kinds, each { group, version, kind, resource, namespaced, words }. They are read once, and again after forget.
export function kinds() {
  reading ??= read().catch((err) => { reading = null; throw err; });
  return reading;
}

export function forget() { reading = null; }

async function read() {
  const groups = (await Promise.all(['/api', '/apis'].map((path) => getJSON(server + path, aggregated)))).flatMap((list) => list.items ?? []);
  const found = new Map();
  for (const { metadata, versions } of groups) {
    for (const version of versions) {
      for (const r of version.resources ?? []) {
        const group = metadata?.name ?? '', key = `${r.resource}.${group}`;
        if (found.has(key)) continue; // the preferred version comes first
        found.set(key, {
          group, version: version.version, kind: r.responseKind.kind, resource: r.resource, namespaced: r.scope === 'Namespaced',
          words: [r.resource, r.singularResource, r.responseKind.kind.toLowerCase(), ...(r.shortNames ?? [])],
        });
      }
    }
  }
  return [...found.values()];
}

// kindOf finds a kind by a word of kubectl's, such as deploy, Deployment or deployments.apps; group may be left out.
export async function kindOf(word, group) {
  const [name, ...rest] = word.toLowerCase().split('.');
  group ??= rest.length ? rest.join('.') : undefined;
  const found = (await kinds()).find((k) => k.words.includes(name) && (group === undefined || k.group === group));
  if (!found) throw new Error(`there is no kind ${word}`);
  return found;
}

// listPath is the path of the lists of a kind.
export function listPath(kind, namespace) {
  const base = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  return base + (kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '') + `/${kind.resource}`;
}

// link is the address of an object's view.
export function link(resource, group, namespace, name) {
  return '#/object/' + [group ? `${resource}.${group}` : resource, namespace || '-', name].map(encodeURIComponent).join('/');
}
