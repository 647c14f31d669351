package views

import "k8s.io/apimachinery/pkg/labels"

// kind is the placed pods of one namespace that have the same labels: no query can tell them apart.
type kind struct {
	namespace string
	labels    labels.Set
	pods      int64
	// By slot: those that stay, and those that are being deleted.
	staying, leaving counter
	groups           []*group // that count them
}

// kindOf finds the pod's kind, or makes it and finds the groups that count it.
func (v *Views) kindOf(m *Member) *kind {
	in := v.kinds[m.Namespace]
	if in == nil {
		in = map[string]*kind{}
		v.kinds[m.Namespace] = in
	}
	k := in[m.labelText]
	if k == nil {
		k = &kind{namespace: m.Namespace, labels: m.Labels}
		in[m.labelText] = k
		v.index.each(m.Namespace, m.Labels, func(g *group) { v.join(g, k) })
	}
	return k
}

// join has the group count the pods of a kind, if its queries select them.
func (v *Views) join(g *group, k *kind) {
	for _, q := range g.queries {
		if !q.Matches(k.namespace, k.labels, v.namespaceLabels) {
			return
		}
	}
	k.groups = append(k.groups, g)
	g.kinds = append(g.kinds, k)
}

func (v *Views) forgetKind(m *Member, k *kind) {
	for _, g := range k.groups {
		g.kinds = without(g.kinds, k)
	}
	in := v.kinds[m.Namespace]
	if delete(in, m.labelText); len(in) == 0 {
		delete(v.kinds, m.Namespace)
	}
}

func (v *Views) countKind(slot int, m *Member, n int64) {
	k := v.kindOf(m)
	if m.Leaving {
		k.leaving.add(int32(slot), n)
	} else {
		k.staying.add(int32(slot), n)
	}
	for _, g := range k.groups {
		if !g.living || !m.Leaving {
			g.add(slot, n)
		}
	}
	if k.pods += n; k.pods == 0 {
		v.forgetKind(m, k)
	}
}
