package undelete

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// part is one object that was.
type part struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
	uid      types.UID
	// volume is that of a claim, if it still exists.
	volume string
	notes  []string
}

// String is KIND/NAME.
func (p *part) String() string { return p.object.GetKind() + "/" + p.object.GetName() }

// omission is an object that is not given back.
type omission struct {
	part *part
	why  string
}

// world is what the plan has to know of what there is now.
type world struct {
	// volumes are those that exist, owners the uids that owners outside of the plan have now, by their former ones.
	volumes map[string]bool
	owners  map[types.UID]types.UID
}

// plan is what is made: one wave after the other.
type plan struct {
	waves   [][]*part
	leftOut []omission
}

func (p *plan) parts() []*part { return slices.Concat(p.waves...) }

// newPlan decides about each object, and changes those that come back to what is created. References still have former uids.
func newPlan(parts []*part, w world) *plan {
	pl := &planner{world: w, byUID: map[types.UID]*part{}, reasons: map[types.UID]string{}, depths: map[types.UID]int{}}
	for _, p := range parts {
		pl.byUID[p.uid] = p
	}
	result := &plan{}
	var given []*part
	for _, p := range parts {
		if why := pl.leaveOut(p); why != "" {
			result.leftOut = append(result.leftOut, omission{p, why})
			continue
		}
		given = append(given, p)
	}
	for _, p := range given {
		pl.refer(p)
		clean(p, w)
	}
	result.waves = pl.inWaves(given)
	return result
}

type planner struct {
	world
	byUID map[types.UID]*part
	// reasons why objects are left out, "" if they are not; and how many owners are above them.
	reasons map[types.UID]string
	depths  map[types.UID]int
}

// leaveOut says why an object is not given back.
func (pl *planner) leaveOut(p *part) string {
	if why, known := pl.reasons[p.uid]; known {
		return why
	}
	pl.reasons[p.uid] = "" // owners in a circle
	why := cmp.Or(aside(p, pl.byUID), pl.madeAgain(p))
	pl.reasons[p.uid] = why
	return why
}

// madeAgain says which controller makes an object, if its owner comes back or is there. Claims have data, and come back unless they live
// and die with a pod.
func (pl *planner) madeAgain(p *part) string {
	owner := metav1.GetControllerOf(p.object)
	if owner == nil || isClaim(p) && owner.Kind != "Pod" {
		return ""
	}
	name := owner.Kind + "/" + owner.Name
	above := pl.byUID[owner.UID]
	switch {
	case above == nil && pl.owners[owner.UID] == "":
		return ""
	case above != nil && pl.leaveOut(above) != "" && metav1.GetControllerOf(above.object) == nil:
		return "it belongs to " + name + ", which is left out"
	}
	return name + " makes it again"
}

// refer drops the references to what is no more.
func (pl *planner) refer(p *part) {
	var kept []metav1.OwnerReference
	for _, owner := range p.object.GetOwnerReferences() {
		above := pl.byUID[owner.UID]
		if above != nil && pl.leaveOut(above) == "" || above == nil && pl.owners[owner.UID] != "" {
			kept = append(kept, owner)
			continue
		}
		p.notes = append(p.notes, fmt.Sprintf("without its owner %s/%s", owner.Kind, owner.Name))
	}
	p.object.SetOwnerReferences(kept)
}

func (pl *planner) depth(p *part) int {
	if depth, known := pl.depths[p.uid]; known {
		return depth
	}
	pl.depths[p.uid] = 0 // owners in a circle
	depth := 0
	for _, owner := range p.object.GetOwnerReferences() {
		if above := pl.byUID[owner.UID]; above != nil {
			depth = max(depth, pl.depth(above)+1)
		}
	}
	pl.depths[p.uid] = depth
	return depth
}

// inWaves puts owners before owned, and among those with as many owners above them what others need first.
func (pl *planner) inWaves(parts []*part) (waves [][]*part) {
	type place struct{ limits, depth, rank int }
	places := map[*part]place{}
	for _, p := range parts {
		places[p] = place{0, pl.depth(p), rankOf(p.resource.GroupResource())}
		if isLimit(p) {
			places[p] = place{limits: 1}
		}
	}
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b *part) int {
		x, y := places[a], places[b]
		return cmp.Or(cmp.Compare(x.limits, y.limits), cmp.Compare(x.depth, y.depth), cmp.Compare(x.rank, y.rank),
			cmp.Compare(a.String(), b.String()))
	})
	for i, p := range parts {
		if i == 0 || places[p] != places[parts[i-1]] {
			waves = append(waves, nil)
		}
		waves[len(waves)-1] = append(waves[len(waves)-1], p)
	}
	return waves
}

// ranks are which resources come before others: rules before what they are for, what pods need before pods.
var ranks = map[schema.GroupResource]int{
	{Group: "networking.k8s.io", Resource: "networkpolicies"}: 0,
	{Resource: "serviceaccounts"}:                             1, {Group: "rbac.authorization.k8s.io", Resource: "roles"}: 1,
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}: 2,
	{Resource: "secrets"}: 2, {Resource: "configmaps"}: 2, {Resource: "persistentvolumeclaims"}: 2, {Resource: "services"}: 2,
	{Resource: "pods"}: workloads, {Resource: "replicationcontrollers"}: workloads,
}

const (
	usual     = 3
	workloads = 4
)

func rankOf(gr schema.GroupResource) int {
	if rank, known := ranks[gr]; known {
		return rank
	}
	if gr.Group == "apps" || gr.Group == "batch" {
		return workloads
	}
	return usual
}

// isLimit tells what comes last: limits hold for what is made after them, and all this was there before.
func isLimit(p *part) bool {
	return p.resource.Group == "" && (p.resource.Resource == "resourcequotas" || p.resource.Resource == "limitranges")
}

func isClaim(p *part) bool {
	return p.resource.GroupResource() == schema.GroupResource{Resource: "persistentvolumeclaims"}
}
