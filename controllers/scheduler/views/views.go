package views

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Member is what the views know of a placed pod. It does not change.
type Member struct {
	Namespace string
	Labels    labels.Set
	Leaving   bool     // it is being deleted
	Claims    []string // the PersistentVolumeClaims that it uses
	Terms     []*Term  // what it says of other pods

	labelText string
}

// NewMember completes a Member.
func NewMember(m Member) *Member {
	m.labelText = m.Labels.String()
	return &m
}

// Views are all counts over the placed pods of one cache.
type Views struct {
	namespaceLabels func(namespace string) labels.Set
	nodes           []*corev1.Node              // by slot; nil: there is none
	kinds           map[string]map[string]*kind // by namespace and labels
	claims          map[string]map[string]int   // by namespace and name: how many pods use the claim
	groups          map[string]*group
	regions         map[string]*Region
	index           index[*group]
	bearers         bearers
	byLabels        int            // groups that select namespaces by their labels
	known           int            // nodes that are there
	images          map[string]int // by name: how many nodes have the image
}

// New gives the views of no pods and no nodes. namespaceLabels gives nil for a namespace that is not known.
func New(namespaceLabels func(namespace string) labels.Set) *Views {
	return &Views{
		namespaceLabels: namespaceLabels, kinds: map[string]map[string]*kind{}, claims: map[string]map[string]int{},
		groups: map[string]*group{}, regions: map[string]*Region{}, index: index[*group]{}, bearers: newBearers(), images: map[string]int{},
	}
}

// SetNode takes over a new version of the node in a slot; nil: it has gone. Pods stay counted on the slot.
func (v *Views) SetNode(slot int, node *corev1.Node) {
	for len(v.nodes) <= slot {
		v.nodes = append(v.nodes, nil)
	}
	v.countImages(v.nodes[slot], -1)
	v.countImages(node, 1)
	v.nodes[slot] = node
	for _, r := range v.regions {
		r.set(slot, node)
	}
}

func (v *Views) countImages(node *corev1.Node, n int) {
	if node == nil {
		return
	}
	v.known += n
	for name := range imagesOf(node) {
		if v.images[name] += n; v.images[name] == 0 {
			delete(v.images, name)
		}
	}
}

// imagesOf are the names of the images that the node reports with a size.
func imagesOf(node *corev1.Node) map[string]bool {
	names := map[string]bool{}
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if image.SizeBytes > 0 {
				names[name] = true
			}
		}
	}
	return names
}

// Nodes is how many nodes there are.
func (v *Views) Nodes() int { return v.known }

// NodesWith is how many nodes have an image.
func (v *Views) NodesWith(image string) int { return v.images[image] }

// Add counts a pod on a slot.
func (v *Views) Add(slot int, m *Member) { v.count(slot, m, 1) }

// Remove takes back Add.
func (v *Views) Remove(slot int, m *Member) { v.count(slot, m, -1) }

func (v *Views) count(slot int, m *Member, n int64) {
	v.countKind(slot, m, n)
	for _, t := range m.Terms {
		v.bear(slot, t, n)
	}
	for _, name := range m.Claims {
		v.countClaim(m.Namespace, name, int(n))
	}
}

func (v *Views) countClaim(namespace, name string, n int) {
	in := v.claims[namespace]
	if in == nil {
		in = map[string]int{}
		v.claims[namespace] = in
	}
	if in[name] += n; in[name] == 0 {
		delete(in, name)
	}
	if len(in) == 0 {
		delete(v.claims, namespace)
	}
}

// ClaimUsers is how many placed pods use a claim.
func (v *Views) ClaimUsers(namespace, name string) int { return v.claims[namespace][name] }

// Tally gives the count of the pods that all the queries select, by the domains of the zoning; living leaves out those that are
// being deleted. Release must follow.
func (v *Views) Tally(queries []*Query, living bool, z Zoning) *Tally {
	t := v.tally(v.group(queries, living), v.region(z))
	t.users++
	return t
}

// NamespaceChanged takes note that the labels of a namespace are others now. If it gives true, tallies may be wrong, and all must be
// released before anything else is counted.
func (v *Views) NamespaceChanged() bool {
	v.bearers.version++
	return v.byLabels > 0
}

// Release ends one use of a tally; its counts are forgotten with the last.
func (v *Views) Release(t *Tally) {
	if t.users--; t.users > 0 {
		return
	}
	g, r := t.group, t.region
	g.tallies = without(g.tallies, t)
	r.tallies = without(r.tallies, t)
	if len(g.tallies) == 0 && g.queries != nil {
		delete(v.groups, g.id)
		v.byLabels -= g.selectsNamespaces()
		v.index.remove(g.spot, g)
		for _, k := range g.kinds {
			k.groups = without(k.groups, g)
		}
	}
	if len(r.tallies) == 0 {
		delete(v.regions, r.id())
	}
}

func without[T comparable](list []T, t T) []T {
	i := slices.Index(list, t)
	last := len(list) - 1
	list[i] = list[last]
	return slices.Delete(list, last, last+1)
}

func (v *Views) tally(g *group, r *Region) *Tally {
	for _, t := range g.tallies {
		if t.region == r {
			return t
		}
	}
	t := newTally(g, r)
	g.tallies, r.tallies = append(g.tallies, t), append(r.tallies, t)
	return t
}

func (v *Views) region(z Zoning) *Region {
	id := z.id()
	r := v.regions[id]
	if r == nil {
		r = newRegion(z, v.nodes)
		v.regions[id] = r
	}
	return r
}

func (z *Zoning) id() string { return z.Key + "\n" + z.ID }
func (r *Region) id() string { return r.zoning.id() }

func (v *Views) group(queries []*Query, living bool) *group {
	id := groupID(queries, living)
	g := v.groups[id]
	if g == nil {
		g = &group{id: id, queries: queries, living: living}
		v.fill(g)
		v.groups[id] = g
		v.byLabels += g.selectsNamespaces()
		g.spot = v.index.add(queries[0].spots(), g)
	}
	return g
}

func groupID(queries []*Query, living bool) string {
	ids := make([]string, len(queries))
	for i, q := range queries {
		ids[i] = q.ID()
	}
	id := strings.Join(ids, "\n")
	if living {
		id += "\nliving"
	}
	return id
}

// fill counts what is placed already.
func (v *Views) fill(g *group) {
	if first := g.queries[0]; len(first.Namespaces) == 1 && first.InNamespaces == nil {
		v.fillFrom(g, v.kinds[first.Namespaces[0]])
		return
	}
	for _, in := range v.kinds {
		v.fillFrom(g, in)
	}
}

func (v *Views) fillFrom(g *group, kinds map[string]*kind) {
	before := len(g.kinds)
	for _, k := range kinds {
		v.join(g, k)
	}
	count := func(slot int32, n int64) { g.counts.add(slot, n) }
	for _, k := range g.kinds[before:] {
		k.staying.each(count)
		if !g.living {
			k.leaving.each(count)
		}
	}
}
