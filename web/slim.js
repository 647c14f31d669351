// What the page keeps of an object: little, so that thousands are cheap to send and to hold.

export const slim = { pods: pod, nodes: node, object: (o) => o };

function pod(o) {
  const statuses = o.status.containerStatuses ?? [];
  const owner = (o.metadata.ownerReferences ?? []).find((r) => r.controller);
  return {
    name: o.metadata.name, namespace: o.metadata.namespace, node: o.spec.nodeName ?? '', state: stateOf(o, statuses),
    reason: reasonOf(o, statuses), restarts: statuses.reduce((n, s) => n + s.restartCount, 0), created: o.metadata.creationTimestamp,
    owner: owner ? `${owner.kind}/${owner.name}` : '',
  };
}

// stateOf is one of the states that have a cell of their own look.
function stateOf(o, statuses) {
  if (o.metadata.deletionTimestamp) return 'ending';
  switch (o.status.phase) {
    case 'Succeeded': return 'done';
    case 'Failed': return 'failed';
    case 'Running': break;
    default: return statuses.some((s) => s.state?.waiting && isFailure(s.state.waiting.reason)) ? 'failed' : 'pending';
  }
  if (statuses.some((s) => isFailure(s.state?.waiting?.reason))) return 'failed';
  return (o.status.conditions ?? []).some((c) => c.type === 'Ready' && c.status === 'True') ? 'ready' : 'unready';
}

const isFailure = (reason) => /BackOff|^Err|Error$/.test(reason ?? '');

function reasonOf(o, statuses) {
  const waiting = statuses.map((s) => s.state?.waiting?.reason).find(Boolean);
  const condition = (o.status.conditions ?? []).find((c) => c.type === 'PodScheduled' && c.status === 'False');
  return o.status.reason || waiting || condition?.message || '';
}

function node(o) {
  const ready = (o.status.conditions ?? []).find((c) => c.type === 'Ready');
  return {
    name: o.metadata.name, namespace: '', ready: ready?.status === 'True', why: ready?.status === 'True' ? '' : ready?.message ?? 'unknown',
    cordoned: !!o.spec.unschedulable, tainted: (o.spec.taints ?? []).map((t) => `${t.key}:${t.effect}`).join(', '),
  };
}

export const keyOf = (o) => `${o.metadata.namespace ?? ''}/${o.metadata.name}`;
