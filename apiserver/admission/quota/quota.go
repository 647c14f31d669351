package quota

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

var (
	quotasResource     = corev1.SchemeGroupVersion.WithResource("resourcequotas")
	namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

	definitionsResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
)

// countPrefix begins the names that limit how many objects of a resource there are.
const countPrefix = "count/"

// Quota charges writes. It is safe for concurrent use.
type Quota struct {
	store   *storage.Store
	table   *storage.Table
	limited Limited

	mu      sync.Mutex
	holders map[string]*holder // by namespace
}

// New returns the quotas of a store, and what nobody may use without one.
func New(store *storage.Store, limited Limited) *Quota {
	return &Quota{store: store, table: store.Served(quotasResource), limited: limited, holders: map[string]*holder{}}
}

// Write is one write as Charge sees it: old becomes obj; nil means created or
// deleted.
type Write struct {
	Kind     *resource.Any
	Obj, Old resource.Object
	// Status: what became of an object is charged, never refused.
	Status bool
}

func (w Write) about() resource.Object {
	if w.Obj != nil {
		return w.Obj
	}
	return w.Old
}

// Charge adds to the view's transaction what a write changes in the quotas of its
// namespace, or refuses with 403 what would exceed one.
func (q *Quota) Charge(v *storage.View, w Write) error {
	if q.table == nil || w.Kind.ClusterScoped || ignored[w.Kind.GroupResource()] {
		return nil
	}
	if err := touchNamespace(v, w); err != nil {
		return err
	}
	m := meterOf(w.Kind)
	var quotas []*corev1.ResourceQuota
	for obj, err := range v.Snapshot(quotasResource).All(w.about().GetNamespace()) {
		if err != nil {
			return err
		}
		current := obj.(*corev1.ResourceQuota)
		quotas = append(quotas, current)
		if w.Kind.GroupResource() == quotasResource.GroupResource() && current.Name == w.about().GetName() {
			continue // it is being written itself
		}
		charged, err := q.charge(v, m, current, w)
		if err != nil {
			return err
		}
		if charged == nil {
			continue
		}
		if err := v.Replace(quotasResource, charged); err != nil {
			return err
		}
	}
	return q.limited.judge(w, m, quotas)
}

// touchNamespace writes the namespace of a new quota as it is: every creation in it
// depends on its revision.
func touchNamespace(v *storage.View, w Write) error {
	if w.Kind.GroupResource() != quotasResource.GroupResource() || w.Old != nil {
		return nil
	}
	namespace, err := v.Snapshot(namespacesResource).Get("", w.Obj.GetNamespace())
	if err != nil || namespace == nil {
		return err
	}
	return v.Replace(namespacesResource, namespace)
}

// charge returns the quota after the write, or nil if the write does not concern it.
func (q *Quota) charge(v *storage.View, m meter, current *corev1.ResourceQuota, w Write) (*corev1.ResourceQuota, error) {
	limited := m.limited(quotav1.ResourceNames(current.Spec.Hard))
	if len(limited) == 0 {
		return nil, nil
	}
	before, after := m.usage(current, w.Old), m.usage(current, w.Obj)
	delta := quotav1.RemoveZeros(quotav1.Mask(quotav1.Subtract(after, before), limited))
	if w.Old == nil && len(after) > 0 {
		if err := m.constrain(current, limited, w); err != nil {
			return nil, err
		}
	}
	if len(delta) == 0 {
		return nil, nil
	}
	charged := current.DeepCopy()
	if !settled(current) {
		used, err := q.count(v, current)
		if err != nil {
			return nil, err
		}
		charged.Status = corev1.ResourceQuotaStatus{Hard: current.Spec.Hard.DeepCopy(), Used: used}
	}
	if err := judge(charged, delta, w); err != nil {
		return nil, err
	}
	charged.Status.Used = quotav1.Add(charged.Status.Used, delta)
	return charged, nil
}

// settled reports whether a quota's status speaks of its limits as they are.
func settled(q *corev1.ResourceQuota) bool {
	return apiequality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard)
}

// count measures what a quota limits, in a view.
func (q *Quota) count(v *storage.View, current *corev1.ResourceQuota) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	for _, kind := range q.store.Kinds() {
		if kind.ClusterScoped || ignored[kind.GroupResource()] || kind.StorageResource() != kind.GroupResource() {
			continue
		}
		m := meterOf(kind)
		limited := m.limited(quotav1.ResourceNames(current.Spec.Hard))
		if len(limited) == 0 {
			continue
		}
		total := corev1.ResourceList{}
		for _, name := range limited {
			total[name] = zero()
		}
		for obj, err := range v.Snapshot(kind.GroupVersionResource()).All(current.Namespace) {
			if err != nil {
				return nil, err
			}
			total = quotav1.Add(total, quotav1.Mask(m.usage(current, obj), limited))
		}
		used = quotav1.Add(used, total)
	}
	return used, q.countCustom(v, current, used)
}

// countCustom adds what is limited of custom resources. Of those that have no definition now, what was charged stands.
func (q *Quota) countCustom(v *storage.View, current *corev1.ResourceQuota, used corev1.ResourceList) error {
	for name := range current.Spec.Hard {
		if _, counted := used[name]; counted {
			continue
		}
		if had, charged := current.Status.Used[name]; charged {
			used[name] = had
		}
		gr, err := q.customResource(v, name)
		if err != nil {
			return err
		}
		if gr != nil {
			used[name] = *apiresource.NewQuantity(int64(v.Count(*gr, current.Namespace)), apiresource.DecimalSI)
		}
	}
	return nil
}

// customResource is the one that a name such as count/crontabs.example.com means; nil if there is none, or it has no namespaces.
func (q *Quota) customResource(v *storage.View, name corev1.ResourceName) (*schema.GroupResource, error) {
	of, counts := strings.CutPrefix(string(name), countPrefix)
	if !counts || q.store.Served(definitionsResource) == nil {
		return nil, nil
	}
	found, err := v.Snapshot(definitionsResource).Get("", of)
	crd, ok := found.(*apiextensionsv1.CustomResourceDefinition)
	if err != nil || !ok || crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		return nil, err
	}
	return &schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}, nil
}

// holder lets one creator of a namespace at a time through.
type holder struct {
	turn    chan struct{}
	waiting int
}

// Hold waits until no other creator of this process is under way in a namespace that
// has quotas: they would overtake each other in turns. The caller must release. It
// returns what ended ctx if that comes first.
func (q *Quota) Hold(ctx context.Context, namespace string) (release func(), err error) {
	if q.table == nil || namespace == "" || q.table.EmptyIn(namespace) {
		return func() {}, nil
	}
	h := q.holder(namespace)
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn; q.leave(namespace, h) }, nil
	case <-ctx.Done():
		q.leave(namespace, h)
		return nil, ctx.Err()
	}
}

func (q *Quota) holder(namespace string) *holder {
	q.mu.Lock()
	defer q.mu.Unlock()
	h, ok := q.holders[namespace]
	if !ok {
		h = &holder{turn: make(chan struct{}, 1)}
		q.holders[namespace] = h
	}
	h.waiting++
	return h
}

func (q *Quota) leave(namespace string, h *holder) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.waiting--; h.waiting == 0 {
		delete(q.holders, namespace)
	}
}
